"""Others may write to a sweep's storage: what they put there is not run for its owner."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sweep_files import PLANTED, begun_in, changed, loaded, taken

from aimbot_lab.cli.commands.sweep import begun
from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import parse_curriculum, with_overrides
from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.foundation.named_code import TRUST, UntrustedCodeError, always
from aimbot_lab.sweep.document import load_sweep
from aimbot_lab.sweep.record import RECORD, TRIALS, find_record
from aimbot_lab.sweep.report import report
from aimbot_lab.sweep.storage import choose_storage
from aimbot_lab.sweep.trial import score_key
from aimbot_lab.sweep.trial_queue import LEASE
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.worlds.registry import spec_of

POLE = """
name: pole
env: {world: gymnasium, MODULE id: CartPole-v1, num_envs: 4, win: {length_above: 8}}
lessons: [{name: up, completion_criteria: {threshold: 0.9}}]
train: {algo: ppo, total_steps: 256, n_steps: 32, batch_size: 64, network: {layers: [4]}}
"""


def test_a_sweep_whose_storage_was_altered_is_not_gone_on_with(tmp_path: Path) -> None:
    text = changed(PLANTED, ("trials: 8", "trials: 2"))
    address = choose_storage(DataFolder(tmp_path / "data"), "planted", None)
    sweep = loaded(text)
    record = begun(sweep, address, None, resume=False, tags={})
    begun(sweep, address, None, resume=True, tags={})
    stored = dict(record.study.user_attrs[RECORD])
    for altered in (
        {"base": stored["base"].replace("name: ", "name: other ", 1)},
        {"config": json.dumps({**json.loads(stored["config"]), "seeds": 7})},
        {"base_files": json.dumps({"maps.yaml": "a: 1\n"})},
    ):
        record.study.set_user_attr(RECORD, {**stored, **altered})
        with pytest.raises(ConfigurationError, match="was altered after it had begun") as caught:
            begun(sweep, address, None, resume=True, tags={})
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("command", "damage"),
    [
        ("status", {RECORD: "x"}),
        ("report", {RECORD: {"config": "{", "base": ""}}),
        ("status", {RECORD: {}}),
        ("report", {TRIALS: float("nan")}),
        ("status", {TRIALS: {}}),
    ],
)
def test_damaged_records_are_one_line(tmp_path: Path, command: str, damage: dict[str, Any]) -> None:
    ((key, value),) = damage.items()
    begun_in(tmp_path, PLANTED).study.set_user_attr(key, value)
    words = ["sweep", command, "planted", "--data-dir", str(tmp_path / "data")]
    found = CliRunner().invoke(cli, words)
    assert isinstance(found.exception, StoreError)
    assert "the sweep's records are damaged (" in str(found.exception)
    assert "\n" not in str(found.exception)


def test_a_damaged_trial_is_one_line(tmp_path: Path) -> None:
    record = begun_in(tmp_path, PLANTED)
    claim = taken(record.search_queue())
    for key, value, read in (
        (score_key(0), "x", lambda: report(record)),
        (LEASE, {"until": "soon"}, record.reap),
    ):
        record.storage.optuna.set_trial_user_attr(claim.trial_id, key, value)
        with pytest.raises(StoreError, match="records are damaged"):
            read()


def test_no_command_waits_for_a_pipe_in_the_place_of_a_storage(tmp_path: Path) -> None:
    file = tmp_path / "sweeps" / "planted" / "study.db"
    file.parent.mkdir(parents=True)
    os.mkfifo(file)
    with pytest.raises(ConfigurationError, match=r"study\.db: is not a regular file$"):
        find_record(DataFolder(tmp_path), "planted", None)


def marking(folder: Path, name: str) -> Path:
    (folder / f"{name}.py").write_text(f"open({str(folder / name)!r}, 'a').close()\n")
    return folder / name


def test_values_of_a_search_run_no_other_code_than_its_base_names(here: Path) -> None:
    own, other = marking(here, "own_module"), marking(here, "other_module")
    text = POLE.replace("MODULE", "module: own_module,")
    base = parse_curriculum(text, "pole.yaml", may_run=always)
    assert own.exists()
    assert with_overrides(base, ["env.kwargs.render_mode=rgb_array"]).unasked == ()
    for override in ("env.module=other_module", "env.id=other_module:CartPole-v1"):
        refused = with_overrides(base, [override])
        assert refused.unasked
        with pytest.raises(UntrustedCodeError):
            spec_of(refused.config.env)
    plain = parse_curriculum(POLE.replace("MODULE", ""), "pole.yaml", may_run=always)
    assert with_overrides(plain, ["env.module=other_module"]).unasked
    assert not other.exists()


def test_reading_a_sweep_imports_nothing_of_its_base(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = marking(here, "base_module")
    (here / "pole.yaml").write_text(POLE.replace("MODULE", "module: base_module,"))
    (here / "s.yaml").write_text(
        "name: s\nbase: pole.yaml\nsearch: {train.learning_rate: {type: float, low: 1e-4, "
        "high: 1e-2, log: true}}\nobjective: {measure: win_rate, episodes: 4}\ntrials: 1\n"
    )
    data = DataFolder(here / "data")
    sweep = load_sweep(here / "s.yaml", may_run=always)
    begun(sweep, choose_storage(data, "s", None), None, resume=False, tags={})
    assert mark.exists()
    mark.unlink()
    monkeypatch.setenv(TRUST, "")
    assert find_record(data, "s", None).base.unasked
    assert not mark.exists()
