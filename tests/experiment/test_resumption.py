"""Which run is gone on with, and which is refused for what reason."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.runs.checkpoints import CheckpointFolder
from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
from aimbot_lab.experiment.runs.restore import restore
from aimbot_lab.experiment.runs.resumable_runs import ResumableRun, resumable_runs
from aimbot_lab.experiment.runs.resume_checks import (
    _not_resumable,
    check_resume,
    configuration_changes,
    find_resumable,
    newest_resumable,
)
from aimbot_lab.experiment.runs.run_record import (
    RunRecord,
    configuration_hash,
    note_spent_steps,
    read_record,
    write_record,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.history import list_runs
from aimbot_lab.tracking.runs.opening import RunDescription, open_run
from aimbot_lab.tracking.runs.owner import this_process, write_owner
from aimbot_lab.tracking.runs.reopening import reopen_run
from aimbot_lab.tracking.runs.run_summary import RunSummary
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.training.checkpoint.checkpoint import Checkpoint
from aimbot_lab.training.versions import versions

CURRICULUM = """
name: small
env: {num_envs: 8}
lessons:
  - {name: one, targets: {goto: 1}, completion_criteria: {threshold: 0.5}}
  - {name: two, targets: {goto: 1, free: 2}}
train: {total_steps: 1000, n_steps: 2, batch_size: 4}
"""


@pytest.fixture
def data_folder(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.create()
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(CURRICULUM, encoding="utf-8")
    return path


def begun(
    data_folder: DataFolder, run_id: str, curriculum: LoadedCurriculum, **record: Any
) -> ResumableRun:
    """A run whose process is gone."""
    path = data_folder.run_folder(run_id)
    path.mkdir()
    write_owner(path / "owner.json", replace(this_process("token", None), pid=None))
    given = {
        "name": "its name",
        "curriculum": curriculum.name,
        "file": str(curriculum.path.absolute()),
        "begun_ms": 0,
    }
    write_record(path / "checkpoints", RunRecord(**{**given, **record}), curriculum)
    (run,) = (run for run in resumable_runs(data_folder) if run.run_id == run_id)
    return run


def set_alive(run: ResumableRun) -> None:
    write_owner(run.folder.path / "owner.json", this_process("token", None))


def ids(runs: list[ResumableRun]) -> list[str]:
    return [run.run_id for run in runs]


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


def test_the_same_configuration_is_taken_up(data_folder: DataFolder, file: Path) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    resumption = check_resume(run, load_curriculum(file), data_folder)
    assert resumption.request.resume == run
    assert resumption.request.run_name == "its name"
    assert resumption.changes == ()


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


@pytest.mark.parametrize(
    "key",
    [
        "seed=2",
        "env.num_envs=16",
        "env.rewards.facing=3.5",
        "train.torch_threads=2",
        "train.options.clip_range_vf=0.2",
        "tracking.experiment=other",
        "lessons.1.targets.free=3",
    ],
)
def test_no_key_that_can_change_the_result_may_change(
    data_folder: DataFolder, file: Path, key: str
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    with pytest.raises(ConfigurationError, match="can't be resumed with another configuration"):
        check_resume(run, load_curriculum(file, [key]), data_folder)


def test_threads_of_the_simulator_and_more_steps_may_change_and_are_told(
    data_folder: DataFolder, file: Path
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    changed = load_curriculum(file, ["env.threads=2", "train.total_steps=2000", "name=other"])
    resumption = check_resume(run, changed, data_folder)
    assert [str(change) for change in resumption.changes] == [
        "name: was small, is other",
        "env.threads: was 1, is 2",
        "train.total_steps: was 1000, is 2000",
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
    with pytest.raises(ConfigurationError, match="run a1 is still being trained by process"):
        check_resume(run, load_curriculum(file), data_folder)


def test_spent_steps_are_refused_until_there_are_more(data_folder: DataFolder, file: Path) -> None:
    begun(data_folder, "a1", load_curriculum(file))
    note_spent_steps(data_folder.run_folder("a1") / "checkpoints", 1008)
    (run,) = resumable_runs(data_folder)
    with pytest.raises(ConfigurationError, match=r"1,000 steps.*--set train.total_steps=2000"):
        check_resume(run, run.curriculum(), data_folder)
    with pytest.raises(ConfigurationError, match="has taken 1,008 steps"):
        check_resume(run, run.curriculum(["train.total_steps=1005"]), data_folder)
    more = run.curriculum(["train.total_steps=1009"])
    assert check_resume(run, more, data_folder).request.resume == run


def test_steps_below_the_newest_checkpoint_are_refused(data_folder: DataFolder, file: Path) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    CheckpointFolder(run.folder.checkpoints).keep(Checkpoint(500, b""))
    with pytest.raises(ConfigurationError, match="taken 500 steps already, more than"):
        check_resume(run, run.curriculum(["train.total_steps=400"]), data_folder)


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
        ("{algo: hybrid_ppo}", True),
        ("{algo: hybrid_ppo, engine: fused}", True),
        ("{algo: hybrid_ppo, engine: torch}", False),
        ("{algo: hybrid_ppo, network: {layers: [2048]}}", False),
        ("{algo: hybrid_ppo, device: auto}", False),
        ("{algo: ppo}", False),
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
        assert [change.key for change in check_resume(run, changed, data_folder).changes] == [
            "train.torch_threads"
        ]
        return
    with pytest.raises(ConfigurationError, match=r"train\.torch_threads: was 1, is 2"):
        check_resume(run, changed, data_folder)


def kept_checkpoint(run: ResumableRun, *, with_hash: bool = True) -> None:
    path = run.folder.checkpoints
    configuration = configuration_hash(path) if with_hash else None
    CheckpointFolder(path, configuration=configuration).keep(Checkpoint(500, b"state"))


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("written", "altered"),
    [("learning_rate: 0.001", "learning_rate: 0.002"), ("threshold: 0.5", "threshold: 0.4")],
)
def test_an_altered_configuration_is_refused_by_the_name_of_its_file(
    data_folder: DataFolder, file: Path, checkpoint: bool, written: str, altered: str
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    if checkpoint:
        kept_checkpoint(run)
    resolved = run.folder.checkpoints / "resolved.yaml"
    whole = resolved.read_text()
    assert written in whole
    resolved.write_text(whole.replace(written, altered))
    with pytest.raises(ConfigurationError) as refused:
        check_resume(run, run.curriculum(), data_folder)
    (line,) = refused.value.faults
    assert line.startswith(f"{resolved}: was altered since run a1 was begun with it")
    resolved.write_text(whole)
    assert check_resume(run, run.curriculum(), data_folder).request.resume == run


def test_a_configuration_that_is_gone_is_named(data_folder: DataFolder, file: Path) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    curriculum = run.curriculum()
    (run.folder.checkpoints / "resolved.yaml").unlink()
    with pytest.raises(ConfigurationError, match=r"resolved.yaml: can't be read"):
        check_resume(run, curriculum, data_folder)


class FakeTraining:
    """Takes any checkpoint."""

    def resume(self, state: bytes, read_part: Any) -> None:
        assert state == b"state"


@pytest.mark.parametrize("with_hash", [False, True])
def test_a_checkpoint_of_an_older_version_is_resumed_with_a_line(
    data_folder: DataFolder, file: Path, with_hash: bool
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file), versions=versions())
    kept_checkpoint(run, with_hash=with_hash)
    check_resume(run, run.curriculum(), data_folder)
    told: list[str] = []
    taken_up = restore(run, FakeTraining(), notify=told.append)  # type: ignore[arg-type]
    assert taken_up.step == 500
    assert [line.count("resolved.yaml: is taken as it is") for line in told] == [1] * (
        not with_hash
    )
    taken_up.folder.keep(Checkpoint(600, b"state"))
    assert taken_up.folder.has_configuration(configuration_hash(run.folder.checkpoints))


def test_a_damaged_record_or_owner_is_named_and_hides_no_checkpoint(
    data_folder: DataFolder, file: Path
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    kept_checkpoint(run)
    (run.folder.path / "owner.json").write_bytes(b"{")
    found = find_resumable("a1", data_folder)
    with pytest.raises(ConfigurationError, match=r"owner.json: is damaged, .* --take-over"):
        check_resume(found, found.curriculum(), data_folder)
    resumption = check_resume(found, found.curriculum(), data_folder, take_over=True)
    assert resumption.request.take_over
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
    with pytest.raises(ConfigurationError, match=r"spent its 1,000 steps; give it more"):
        check_resume(run, run.curriculum(), data_folder)
    more = run.curriculum(["train.total_steps=2000"])
    assert check_resume(run, more, data_folder).request.resume == run
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
        "5",
        "[" * 100_000,
        '{"name": "a", "curriculum": "a", "file": "a", "begun_ms": "x"}',
        '{"name": "a", "curriculum": "a", "file": "a", "begun_ms": 1, "spent_steps": "x"}',
    ],
    ids=["null", "number", "deep", "text for begun_ms", "text for spent_steps"],
)
def test_a_record_of_any_other_kind_hides_no_other_run(
    data_folder: DataFolder, file: Path, content: str
) -> None:
    damaged = begun(data_folder, "a1", load_curriculum(file))
    begun(data_folder, "b2", load_curriculum(file))
    (damaged.folder.checkpoints / "run.json").write_text(content, encoding="utf-8")
    assert [run.run_id for run in resumable_runs(data_folder)] == ["b2"]
