"""What fails in a sweep, or proves nothing, is told as that everywhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState
from sweep_files import PLANTED, changed, loaded, taken

from aimbot_lab.cli.commands.sweep import _shown, begun
from aimbot_lab.cli.text import report_text, status_text
from aimbot_lab.cli.view import PlainSweepView
from aimbot_lab.sweep import record as record_module
from aimbot_lab.sweep.coordinator import SweepResult, SweepSnapshot, best_text
from aimbot_lab.sweep.coordinator import note as markdown
from aimbot_lab.sweep.document import LoadedSweep
from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.sweep.report import report
from aimbot_lab.sweep.storage import StorageAddress, choose_storage
from aimbot_lab.sweep.trial import score_key
from aimbot_lab.sweep.trial_queue import REASON, TrialQueue
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.version import code_hash

WHY = "RuntimeError: simulator lost\x1b the connection"
SCORE = {"seed": 1, "value": 0.5, "steps": 9, "seconds": 1.0, "episodes": 10, "wins": 5}
Sweep = tuple[LoadedSweep, StorageAddress]


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    text = changed(PLANTED, ("trials: 8", "trials: 2"), ("best: 0", "best: 1, seeds: 2"))
    address = choose_storage(DataFolder(tmp_path / "data"), "planted", None)
    return loaded(text), address


def joined(sweep: Sweep, *, resume: bool) -> SweepRecord:
    return begun(*sweep, None, resume=resume, tags={})


def ended(queue: TrialQueue | None, value: float | None, **kept: Any) -> None:
    """The next trial, which fails where it has no value."""
    claim = taken(queue)
    assert queue is not None
    for key, one in kept.items():
        queue.note(claim, key, one)
    queue.finish(claim, TrialState.FAIL if value is None else TrialState.COMPLETE, value)


@pytest.fixture
def failed(sweep: Sweep) -> SweepRecord:
    """A sweep whose best trial, 1, failed in its confirmation after one training of two."""
    record = joined(sweep, resume=False)
    for value in (0.4, 0.7):
        ended(record.search_queue(), value)
    ended(record.confirm_queue(), 0.4, **{score_key(0): SCORE, score_key(1): SCORE})
    ended(record.confirm_queue(), None, **{score_key(0): SCORE, REASON: WHY})
    return record


def test_all_that_tells_of_a_sweep_tells_of_the_failure(
    failed: SweepRecord, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report(failed)
    assert (found.status, found.confirm_ended, found.to_confirm) == ("done", 2, 2)
    line = "the confirmation of trial 1 failed: RuntimeError: simulator lost"
    PlainSweepView().progress(SweepSnapshot(found, {}, None))
    assert line in capsys.readouterr().err
    assert line in status_text(found)
    assert "the confirmation of trial 1 failed" in markdown(found)
    assert found.as_json()["unconfirmed"] == [{"label": "1", "reason": WHY}]
    text = best_text(failed, found) or ""
    assert f"# NOT confirmed on fresh seeds: {line}" in text
    assert all(one.isprintable() for one in text.splitlines())
    assert _shown(SweepResult(found, True, Path("best.yaml"), None, ""), as_json=False) == 1
    told = capsys.readouterr()
    assert line in told.out
    assert "not all confirmed" in told.out
    assert "--resume runs it again" in told.err
    _shown(SweepResult(found, True, None, "a run", "http://db:5000"), as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["run_id"], document["tracking_uri"]) == ("a run", "http://db:5000")


def test_a_sweep_whose_trials_all_fail_has_failed(
    sweep: Sweep, capsys: pytest.CaptureFixture[str]
) -> None:
    record = joined(sweep, resume=False)
    for _ in range(2):
        ended(record.search_queue(), None, **{REASON: WHY})
    found = report(record)
    assert (found.status, best_text(record, found)) == ("done", None)
    assert _shown(SweepResult(found, True, None, None, ""), as_json=False) == 1
    told = capsys.readouterr()
    assert told.out.count("RuntimeError: simulator lost") == 2
    assert told.err == "error: no trial has a value; the table says why\n"


@pytest.mark.parametrize(
    ("values", "best", "shown"),
    [((0.9, 0.9), 0, "+0.700 (2 seeds, all alike)"), ((0.9, 0.8), 1, "+0.650 [+0.015, +1.285]")],
)
def test_two_seeds_that_gain_the_same_prove_nothing(
    sweep: Sweep, values: tuple[float, float], best: int, shown: str
) -> None:
    record = joined(sweep, resume=False)
    for value in (0.2, 0.9):
        ended(record.search_queue(), value)
    for pair in ((0.2, 0.2), values):
        scores = [{**SCORE, "value": value, "wins": round(10 * value)} for value in pair]
        kept = {score_key(place): score for place, score in enumerate(scores)}
        ended(record.confirm_queue(), sum(pair) / 2, **kept)
    found = report(record)
    assert found.status == "done"
    better = "clearly better than the defaults: trial 1"
    said = better if best else "no trial is clearly better than the defaults"
    assert (found.best, found.as_json()["verdict"]) == (best, said)
    assert shown in report_text(found)
    for one in found.confirmed:
        assert one.gain_lower is None or one.gain_lower < one.gain_upper
        assert one.lower < one.value < one.upper  # over the episodes where all are alike


def test_resume_says_what_it_runs_again_and_goes_on_where_that_failed(
    failed: SweepRecord, sweep: Sweep, capsys: pytest.CaptureFixture[str]
) -> None:
    joined(sweep, resume=True)
    assert "the confirmation of trial 1 failed: RuntimeErr" in capsys.readouterr().err
    record = joined(sweep, resume=True)
    assert capsys.readouterr().err == "", "it is due already"
    assert report(record).status == "stopped"
    assert (report(record).confirm_ended, report(record).to_confirm) == (1, 2)
    queue = record.confirm_queue()
    assert queue is not None
    claim = taken(queue)
    assert claim.attributes[score_key(0)] == SCORE, "its first training is kept"
    queue.note(claim, score_key(1), SCORE)
    queue.finish(claim, TrialState.COMPLETE, 0.6)
    found = report(record)
    assert (found.status, found.unconfirmed, found.confirm_ended) == ("done", [], 2)
    assert {one.label for one in found.confirmed} == {"0 (defaults)", "1"}
    assert _shown(SweepResult(found, True, Path("best.yaml"), None, ""), as_json=False) == 0


def test_one_that_fails_again_is_told_and_due_again(failed: SweepRecord, sweep: Sweep) -> None:
    for number in range(2):
        record = joined(sweep, resume=True)
        ended(record.confirm_queue(), None, **{REASON: f"once more {number}"})
        assert [one.reason for one in report(record).unconfirmed] == [f"once more {number}"]


def test_a_sweep_that_other_code_began_says_so_once_it_knows(
    failed: SweepRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failed.other_code is None
    monkeypatch.setattr(record_module, "code_hash", lambda: "0ddc0de5")
    assert failed.other_code is not None
    assert f"({code_hash()}, and this is 0ddc0de5)" in failed.other_code
    stored = {k: v for k, v in failed.study.user_attrs["sweep"].items() if k != "code"}
    failed.study.set_user_attr("sweep", stored)
    assert failed.other_code is None
