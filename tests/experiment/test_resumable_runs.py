"""Which runs can be resumed: their records, and how they are found."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from begun_runs import CURRICULUM, begun, ids, kept_checkpoint, set_alive

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.resume import (
    _not_resumable,
    check_resume,
    find_resumable,
    newest_resumable,
)
from aimbot_lab.experiment.runs.run_record import (
    RunRecord,
    close_orphan_runs,
    note_spent_steps,
    read_record,
    resumable_runs,
    write_record,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run, reopen_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import RunSummary


def test_the_record_keeps_the_curriculum_as_it_was_begun(
    data_folder: DataFolder, file: Path
) -> None:
    given = load_curriculum(file, ["train.gamma=0.5", "seed=7"])
    run = begun(data_folder, "a1", given, key="study/3", versions={"torch": "2"})
    file.write_text("nonsense")
    assert run.curriculum().config == given.config
    assert run.curriculum(["train.total_steps=9"]).config.train.total_steps == 9
    assert (run.record.key, run.record.versions) == ("study/3", {"torch": "2"})
    assert not run.alive
    set_alive(run)
    (run,) = resumable_runs(data_folder)
    assert run.alive


def test_a_record_appears_whole_or_not_at_all(
    data_folder: DataFolder, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aimbot_lab.experiment.runs import run_record

    real, calls = run_record.put_file, []

    def failing(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        real(*arguments)

    monkeypatch.setattr(run_record, "put_file", failing)
    with pytest.raises(OSError, match="No space"):
        begun(data_folder, "a1", load_curriculum(file))
    assert [path.name for path in data_folder.run_folder("a1").iterdir()] == ["owner.json"]
    assert resumable_runs(data_folder) == []


def test_runs_come_newest_first_and_by_key(data_folder: DataFolder, file: Path) -> None:
    loaded = load_curriculum(file)
    for run_id, when, key in (("a", 10, "x"), ("b", 30, "y"), ("c", 20, "x")):
        begun(data_folder, run_id, loaded, begun_ms=when, key=key)
    assert ids(resumable_runs(data_folder)) == ["b", "c", "a"]
    assert ids(resumable_runs(data_folder, key="x")) == ["c", "a"]


def test_a_run_is_found_by_the_beginning_of_its_id(data_folder: DataFolder, file: Path) -> None:
    loaded = load_curriculum(file)
    for run_id in ("abc1", "abd2", "abd22"):
        begun(data_folder, run_id, loaded)
    assert find_resumable("abc", data_folder).run_id == "abc1"
    assert find_resumable("abd2", data_folder).run_id == "abd2"
    for unclear in ("ab", "", "zz"):
        with pytest.raises(ConfigurationError):
            find_resumable(unclear, data_folder)


def test_the_newest_run_of_the_file_or_the_name_and_seed_is_taken(
    data_folder: DataFolder, file: Path, tmp_path: Path
) -> None:
    loaded = load_curriculum(file)
    assert newest_resumable(loaded, data_folder) is None
    other = tmp_path / "other.yaml"
    other.write_text(CURRICULUM.replace("small", "other"))
    begun(data_folder, "other", load_curriculum(other), begun_ms=90)
    begun(data_folder, "seed2", load_curriculum(file, ["seed=2"]), begun_ms=80)
    assert newest_resumable(loaded, data_folder) is None
    begun(data_folder, "old", loaded, begun_ms=10)
    begun(data_folder, "new", loaded, begun_ms=20)
    begun(data_folder, "changed", load_curriculum(file, ["train.gamma=0.5"]), begun_ms=70)
    found = newest_resumable(loaded, data_folder)
    assert found is not None
    assert found.run_id == "new"
    note_spent_steps(found.folder.checkpoints, 1000)
    again = newest_resumable(loaded, data_folder)
    assert again is not None
    assert again.run_id == "old"


def test_a_record_that_no_version_can_read_is_none(data_folder: DataFolder, file: Path) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    for text in ("{", "[]", '{"name": 1}'):
        (run.folder.checkpoints / "run.json").write_text(text)
        assert read_record(run.folder.checkpoints) is None
        assert resumable_runs(data_folder) == []


def test_a_damaged_record_or_owner_is_named_and_hides_no_checkpoint(
    data_folder: DataFolder, file: Path
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    kept_checkpoint(run)
    (run.folder.path / "owner.json").write_bytes(b"{")
    found = find_resumable("a1", data_folder)
    with pytest.raises(ConfigurationError, match=r"owner.json: is damaged, .* --take-over"):
        check_resume(found, found.curriculum(), data_folder)
    request, _ = check_resume(found, found.curriculum(), data_folder, take_over=True)
    assert request.take_over
    (run.folder.checkpoints / "run.json").write_bytes(b"{")
    summary = RunSummary("a1", "", "", "1", "KILLED", datetime.now(UTC), None, {}, {})
    assert "run.json: is damaged" in _not_resumable(summary, data_folder)


def test_a_dead_process_whose_run_had_spent_its_steps_leaves_a_failed_one(
    data_folder: DataFolder, file: Path
) -> None:
    loaded = load_curriculum(file)
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("spent"))
    path = data_folder.run_folder(tracker.run_id) / "checkpoints"
    write_record(path, RunRecord("its name", "small", "", 0), loaded)
    note_spent_steps(path, 1008)
    die(tracker)
    assert close_orphan_runs(data_folder) == [tracker.run_id]
    assert [run.status for run in list_runs(data_folder)] == ["FAILED"]
    (run,) = resumable_runs(data_folder)
    with pytest.raises(ConfigurationError, match=r"used up its 1,008 steps; give it more"):
        check_resume(run, run.curriculum(), data_folder)
    more = run.curriculum(["train.total_steps=2000"])
    assert check_resume(run, more, data_folder)[0].resume == run
    again = reopen_run(data_folder, run.run_id)
    note_spent_steps(path, None)  # as a training that goes on does
    die(again)
    assert close_orphan_runs(data_folder) == [run.run_id]
    assert [run.status for run in list_runs(data_folder)] == ["KILLED"]


def die(tracker: Any) -> None:
    """Leave a run as the death of its process does."""
    tracker._sender.stop()
    tracker._sender._thread.join()
    tracker._journal.close()
    tracker._folder.hold.release()


@pytest.mark.parametrize(
    "content",
    [
        "null",
        "[" * 100_000,
        '{"name": "a", "curriculum": "a", "file": "a", "begun_ms": 1, "spent_steps": "x"}',
    ],
    ids=["null", "deep", "text for spent_steps"],
)
def test_a_record_of_any_other_kind_hides_no_other_run(
    data_folder: DataFolder, file: Path, content: str
) -> None:
    damaged = begun(data_folder, "a1", load_curriculum(file))
    begun(data_folder, "b2", load_curriculum(file))
    (damaged.folder.checkpoints / "run.json").write_text(content, encoding="utf-8")
    assert [run.run_id for run in resumable_runs(data_folder)] == ["b2"]
