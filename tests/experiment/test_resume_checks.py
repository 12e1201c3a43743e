"""Which changes of its configuration a run is resumed with, and what has changed since."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from begun_runs import CURRICULUM, begun, kept_checkpoint, set_alive

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.crew import Crew
from aimbot_lab.experiment.runs.resume import check_resume, configuration_changes, restore
from aimbot_lab.experiment.runs.run_record import (
    CheckpointFolder,
    configuration_hash,
    note_spent_steps,
    resumable_runs,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.training.checkpoint import versions
from aimbot_lab.training.run_hooks import Checkpoint
from aimbot_lab.worlds.registry import settings_with


def test_the_same_configuration_is_taken_up(data_folder: DataFolder, file: Path) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    request, changes = check_resume(run, load_curriculum(file), data_folder)
    assert request.resume == run
    assert request.run_name == "its name"
    assert changes == ()


def test_changes_are_listed_key_by_key_and_refused(data_folder: DataFolder, file: Path) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    changed = load_curriculum(
        file,
        [
            "train.gamma=0.5",
            "env.threads=2",
            "lessons.0.completion_criteria.threshold=0.25",
            "train.network.layers=[8]",
        ],
    )
    with pytest.raises(ConfigurationError) as raised:
        check_resume(run, changed, data_folder)
    assert raised.value.exit_code == 2
    assert list(raised.value.faults) == [
        "run a1 can't be resumed with another configuration than its own:",
        "  env.threads: was 1, is 2",
        "  lessons.0.completion_criteria.threshold: was 0.5, is 0.25",
        "  train.gamma: was 0.99, is 0.5",
        "  train.network.layers: was [64, 64], is [8]",
    ]


def test_a_password_of_the_store_is_neither_kept_nor_compared_nor_shown(
    data_folder: DataFolder, file: Path
) -> None:
    first, renewed, elsewhere = (
        load_curriculum(file, [f"tracking.uri=http://me:{word}@{host}"])
        for word, host in (("secret1", "a"), ("secret2", "a"), ("secret3", "b"))
    )
    assert first.config.tracking.uri == "http://me:secret1@a"
    run = begun(data_folder, "a1", first)
    kept = [path for path in run.folder.path.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"secret" in path.read_bytes()]
    assert check_resume(run, renewed, data_folder)[1] == ()
    with pytest.raises(ConfigurationError) as raised:
        check_resume(run, elsewhere, data_folder)
    assert raised.value.faults[1] == "  tracking.uri: was http://me:***@a, is http://me:***@b"


@pytest.mark.parametrize(
    "key",
    [
        "seed=2",
        "train.options.clip_range_vf=0.2",
        "lessons.1.targets.free=3",
    ],
)
def test_no_key_that_can_change_the_result_may_change(
    data_folder: DataFolder, file: Path, key: str
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    with pytest.raises(ConfigurationError, match="can't be resumed with another configuration"):
        check_resume(run, load_curriculum(file, [key]), data_folder)


def test_threads_of_the_simulator_more_steps_and_the_device_may_change_and_are_told(
    data_folder: DataFolder, file: Path
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    given = ["env.threads=2", "train.total_steps=2000", "name=other", "train.device=auto"]
    changed = load_curriculum(file, given)
    _, changes = check_resume(run, changed, data_folder)
    assert [str(change) for change in changes] == [
        "name: was small, is other",
        "env.threads: was 1, is 2",
        "train.total_steps: was 1000, is 2000",
        "train.device: was cpu, is auto",
    ]


def test_a_lesson_more_is_a_change(file: Path, tmp_path: Path) -> None:
    longer = tmp_path / "longer.yaml"
    more = "lessons:\n  - {name: zero, targets: {goto: 1}, completion_criteria: {threshold: 0.1}}"
    longer.write_text(CURRICULUM.replace("lessons:", more))
    changes = configuration_changes(load_curriculum(file).config, load_curriculum(longer).config)
    assert "lessons.2.name: was nothing, is two" in map(str, changes)


def test_a_run_that_a_process_has_is_refused(data_folder: DataFolder, file: Path) -> None:
    set_alive(begun(data_folder, "a1", load_curriculum(file)))
    (run,) = resumable_runs(data_folder)
    with pytest.raises(ConfigurationError, match="run a1 is still trained by process"):
        check_resume(run, load_curriculum(file), data_folder)


def test_spent_steps_are_refused_until_there_are_more(data_folder: DataFolder, file: Path) -> None:
    begun(data_folder, "a1", load_curriculum(file))
    note_spent_steps(data_folder.run_folder("a1") / "checkpoints", 1008)
    (run,) = resumable_runs(data_folder)
    with pytest.raises(ConfigurationError, match=r"1,008 steps.*--set train.total_steps=2016"):
        check_resume(run, run.curriculum(), data_folder)
    with pytest.raises(ConfigurationError, match="has taken 1,008 steps"):
        check_resume(run, run.curriculum(["train.total_steps=1005"]), data_folder)
    more = run.curriculum(["train.total_steps=1009"])
    assert check_resume(run, more, data_folder)[0].resume == run


def test_steps_below_the_newest_checkpoint_are_refused(data_folder: DataFolder, file: Path) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    CheckpointFolder(run.folder.checkpoints).keep(Checkpoint(500, b""))
    with pytest.raises(ConfigurationError, match="taken 500 steps already, more than"):
        check_resume(run, run.curriculum(["train.total_steps=400"]), data_folder)


def test_fewer_steps_than_were_taken_are_told_from_spent_ones(
    data_folder: DataFolder, file: Path
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file), spent_steps=1024)
    with pytest.raises(ConfigurationError) as raised:
        check_resume(run, load_curriculum(file, ["train.total_steps=500"]), data_folder)
    assert str(raised.value) == (
        "run a1 has taken 1,024 steps already, more than train.total_steps = 500; give it more "
        "than it has taken, for example --set train.total_steps=2048"
    )


@pytest.mark.parametrize(
    ("train", "may"),
    [
        ("{algo: hybrid_ppo, engine: fused}", True),
        ("{algo: hybrid_ppo, engine: torch}", False),
        ("{algo: hybrid_ppo, network: {layers: [2048]}}", False),
    ],
)
def test_threads_of_learning_may_change_where_they_change_no_bit(
    data_folder: DataFolder, file: Path, train: str, may: bool
) -> None:
    settings = f"train: {train[:-1]}, total_steps: 1000, n_steps: 2, batch_size: 4}}"
    text = CURRICULUM.replace("train: {total_steps: 1000, n_steps: 2, batch_size: 4}", settings)
    file.write_text(text, encoding="utf-8")
    run = begun(data_folder, "a1", load_curriculum(file))
    changed = load_curriculum(file, ["train.torch_threads=2"])
    if may:
        assert [change.key for change in check_resume(run, changed, data_folder)[1]] == [
            "train.torch_threads"
        ]
        return
    with pytest.raises(ConfigurationError, match=r"train\.torch_threads: was 1, is 2"):
        check_resume(run, changed, data_folder)


class FakeTraining:
    """Takes any checkpoint."""

    plan = SimpleNamespace(env=settings_with())
    env = SimpleNamespace(world=None)
    schedule_jumps: dict[str, tuple[float, float]] = {}  # noqa: RUF012

    def resume(self, state: bytes, read_part: Any) -> None:
        assert state == b"state"


@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_altered_configuration_is_refused_by_the_name_of_its_file(
    data_folder: DataFolder, file: Path, checkpoint: bool
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    if checkpoint:
        kept_checkpoint(run)
    resolved = run.folder.checkpoints / "resolved.yaml"
    whole = resolved.read_text()
    assert "threshold: 0.5" in whole
    resolved.write_text(whole.replace("threshold: 0.5", "threshold: 0.4"))
    with pytest.raises(ConfigurationError) as refused:
        check_resume(run, run.curriculum(), data_folder)
    (line,) = refused.value.faults
    assert line.startswith(f"{resolved}: was altered since run a1 was begun with it")
    resolved.write_text(whole)
    assert check_resume(run, run.curriculum(), data_folder)[0].resume == run


def test_a_configuration_that_is_gone_is_named(data_folder: DataFolder, file: Path) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    curriculum = run.curriculum()
    (run.folder.checkpoints / "resolved.yaml").unlink()
    with pytest.raises(ConfigurationError, match=r"resolved.yaml: can't be read"):
        check_resume(run, curriculum, data_folder)


@pytest.mark.parametrize("with_hash", [False, True])
def test_a_checkpoint_of_an_older_version_is_resumed_with_a_line(
    data_folder: DataFolder, file: Path, with_hash: bool
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file), versions=versions())
    kept_checkpoint(run, with_hash=with_hash)
    check_resume(run, run.curriculum(), data_folder)
    told: list[str] = []
    taken_up = restore(run, FakeTraining(), crew=Crew(), notify=told.append)  # type: ignore[arg-type]
    assert taken_up.step == 500
    assert [line.count("resolved.yaml: is used unchecked") for line in told] == [1] * (
        not with_hash
    )
    taken_up.folder.keep(Checkpoint(600, b"state"))
    assert taken_up.folder.has_configuration(configuration_hash(run.folder.checkpoints))
