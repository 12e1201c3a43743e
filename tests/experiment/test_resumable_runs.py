"""Which runs can be resumed, with which changes; and a take-over that fails leaves the run."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from begun_runs import CURRICULUM, begun, ids, kept_checkpoint, set_alive

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs import crew, run_record
from aimbot_lab.experiment.runs import run as run_module
from aimbot_lab.experiment.runs.crew import Crew
from aimbot_lab.experiment.runs.resume import (
    _not_resumable,
    check_resume,
    find_resumable,
    newest_resumable,
    restore,
)
from aimbot_lab.experiment.runs.run_record import (
    CheckpointFolder,
    ResumableRun,
    RunRecord,
    RunRequest,
    close_orphan_runs,
    configuration_hash,
    note_spent_steps,
    read_record,
    resumable_runs,
    write_record,
)
from aimbot_lab.foundation.errors import ConfigurationError, LabError, StoreError
from aimbot_lab.tracking import run_folder
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run, reopen_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import RunSummary
from aimbot_lab.training.checkpoint import versions
from aimbot_lab.training.run_hooks import Checkpoint, SilentObserver
from aimbot_lab.worlds.registry import settings_with

pytestmark = pytest.mark.usefixtures("file")


@pytest.fixture
def run(data_folder: DataFolder, file: Path) -> ResumableRun:
    return begun(data_folder, "a1", load_curriculum(file))


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


def test_runs_come_newest_first_and_by_key_and_are_found_by_the_beginning_of_their_ids(
    data_folder: DataFolder, file: Path
) -> None:
    loaded = load_curriculum(file)
    for run_id, when, key in (("abc1", 10, "x"), ("abd2", 30, "y"), ("abd22", 20, "x")):
        begun(data_folder, run_id, loaded, begun_ms=when, key=key)
    assert ids(resumable_runs(data_folder)) == ["abd2", "abd22", "abc1"]
    assert ids(resumable_runs(data_folder, key="x")) == ["abd22", "abc1"]
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
    assert found.run_id == "new"
    note_spent_steps(found.folder.checkpoints, 1000)
    assert newest_resumable(loaded, data_folder).run_id == "old"


def test_a_damaged_record_or_owner_is_named_and_hides_no_checkpoint(
    data_folder: DataFolder, run: ResumableRun
) -> None:
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
        *("{", "[]", "null", '{"name": 1}', "[" * 100_000),
        '{"name": "a", "curriculum": "a", "file": "a", "begun_ms": 1, "spent_steps": "x"}',
    ],
    ids=lambda content: content[:20],
)
def test_a_record_that_can_not_be_read_hides_no_other_run(
    run: ResumableRun, data_folder: DataFolder, content: str
) -> None:
    begun(data_folder, "b2", run.curriculum())
    (run.folder.checkpoints / "run.json").write_text(content, encoding="utf-8")
    assert read_record(run.folder.checkpoints) is None
    assert ids(resumable_runs(data_folder)) == ["b2"]


def changed(run: ResumableRun, *overrides: str) -> list[str]:
    """With what changes a run is resumed with these overrides."""
    curriculum = load_curriculum(run.record.file, overrides)
    request, changes = check_resume(run, curriculum, run.data_folder)
    assert (request.resume, request.run_name) == (run, "its name")
    return [str(change) for change in changes]


def refusal(run: ResumableRun, *overrides: str) -> list[str]:
    """The lines in which that is refused."""
    with pytest.raises(ConfigurationError) as raised:
        changed(run, *overrides)
    assert raised.value.exit_code == 2
    return list(raised.value.faults)


def test_changes_are_listed_key_by_key_and_refused(run: ResumableRun, file: Path) -> None:
    assert changed(run) == []
    criteria = "lessons.0.completion_criteria.threshold"
    given = ["train.gamma=0.5", "env.threads=2", f"{criteria}=0.25", "train.network.layers=[8]"]
    assert refusal(run, *given, "seed=2", "train.total_steps=99999") == [
        "run a1 can't be resumed with another configuration than its own:",
        "  seed: was 1, is 2",
        f"  {criteria}: was 0.5, is 0.25",
        "  train.gamma: was 0.99, is 0.5",
        "  train.network.layers: was [64, 64], is [8]",
    ]
    for key in ("train.options.clip_range_vf=0.2", "lessons.1.targets.free=3"):
        assert "with another configuration" in refusal(run, key)[0]
    more = "lessons:\n  - {name: zero, targets: {goto: 1}, completion_criteria: {threshold: 0.1}}"
    file.write_text(CURRICULUM.replace("lessons:", more))
    assert "  lessons.2.name: was nothing, is two" in refusal(run)


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


def test_simulator_threads_steps_and_the_device_may_change_and_are_told(run: ResumableRun) -> None:
    given = ["env.threads=2", "train.total_steps=2000", "name=other", "train.device=auto"]
    assert changed(run, *given) == [
        "name: was small, is other",
        "env.threads: was 1, is 2",
        "train.total_steps: was 1000, is 2000",
        "train.device: was cpu, is auto",
    ]


def test_a_run_that_a_process_has_is_refused(run: ResumableRun, data_folder: DataFolder) -> None:
    set_alive(run)
    (run,) = resumable_runs(data_folder)
    assert refusal(run)[0].startswith("run a1 is still trained by process")


def test_spent_steps_are_refused_until_there_are_more(run: ResumableRun) -> None:
    CheckpointFolder(run.folder.checkpoints).keep(Checkpoint(500, b""))
    (line,) = refusal(run, "train.total_steps=400")
    assert "taken 500 steps already, more than" in line
    note_spent_steps(run.folder.checkpoints, 1008)
    run = replace(run, record=read_record(run.folder.checkpoints))
    (line,) = refusal(run)
    assert re.search(r"1,008 steps.*--set train.total_steps=2016", line)
    assert "has taken 1,008 steps" in refusal(run, "train.total_steps=1005")[0]
    changed(run, "train.total_steps=1009")
    assert refusal(run, "train.total_steps=500") == [
        "run a1 has taken 1,008 steps already, more than train.total_steps = 500; give it more "
        "than it has taken, for example --set train.total_steps=2016"
    ]


@pytest.mark.parametrize(
    ("train", "may"),
    [
        ("algo: hybrid_ppo, engine: fused", True),
        ("algo: hybrid_ppo, engine: torch", False),
        ("algo: hybrid_ppo, network: {layers: [2048]}", False),
    ],
)
def test_threads_of_learning_may_change_where_they_change_no_bit(
    data_folder: DataFolder, file: Path, train: str, may: bool
) -> None:
    file.write_text(CURRICULUM.replace("train: {", f"train: {{{train}, "), encoding="utf-8")
    run = begun(data_folder, "a1", load_curriculum(file))
    line = "train.torch_threads: was 1, is 2"
    if may:
        assert changed(run, "train.torch_threads=2") == [line]
    else:
        assert refusal(run, "train.torch_threads=2")[1:] == [f"  {line}"]


class FakeTraining:
    """Takes any checkpoint."""

    plan = SimpleNamespace(env=settings_with())
    env = SimpleNamespace(world=None)
    schedule_jumps: dict[str, tuple[float, float]] = {}  # noqa: RUF012

    def resume(self, state: bytes, read_part: Any) -> None:
        assert state == b"state"


@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_altered_configuration_is_refused_by_the_name_of_its_file(
    run: ResumableRun, checkpoint: bool
) -> None:
    if checkpoint:
        kept_checkpoint(run)
    resolved = run.folder.checkpoints / "resolved.yaml"
    whole = resolved.read_text()
    resolved.write_text(whole.replace("threshold: 0.5", "threshold: 0.4"))
    (line,) = refusal(run)
    assert line.startswith(f"{resolved}: was altered since run a1 was begun with it")
    resolved.write_text(whole)
    assert changed(run) == []
    resolved.unlink()
    assert "resolved.yaml: can't be read" in refusal(run)[0]


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
    unchecked = [line.count("resolved.yaml: is used unchecked") for line in told]
    assert unchecked == ([] if with_hash else [1])
    taken_up.folder.keep(Checkpoint(600, b"state"))
    assert taken_up.folder.has_configuration(configuration_hash(run.folder.checkpoints))


def trained(resume: Any) -> SimpleNamespace:
    """A training that can only resume, in a world with snapshots."""
    spec = SimpleNamespace(can=lambda _ability: True)
    world = SimpleNamespace(spec=spec)
    return SimpleNamespace(
        resume=resume,
        remarks=(),
        env=SimpleNamespace(world=world),
        schedule_jumps={},
        plan=SimpleNamespace(env=settings_with()),
        close=lambda: None,
    )


def take_over(
    data_folder: DataFolder, monkeypatch: pytest.MonkeyPatch, resume: Any = lambda *_: None
) -> list[str]:
    """What is told where the only run is taken over by a training with that `resume`."""
    (run,) = resumable_runs(data_folder)
    loaded = load_curriculum(data_folder.root.parent / "small.yaml")
    request = RunRequest(loaded, data_folder, resume=run, take_over=True)
    monkeypatch.setattr(crew, "Training", lambda *_, **__: trained(resume))
    monkeypatch.setattr(run_folder, "_WAIT_SECONDS", 0.0)  # the owner is in this very thread
    told: list[str] = []
    with pytest.raises(LabError):
        run_module._opened(request, SilentObserver(), Crew(), on_outage=told.append)
    return told


def living(data_folder: DataFolder) -> tuple[Any, Path]:
    """The tracker of a run that this process trains, with a checkpoint; and its owner's file."""
    loaded = load_curriculum(data_folder.root.parent / "small.yaml")
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("living"))
    path = data_folder.run_folder(tracker.run_id)
    write_record(path / "checkpoints", RunRecord("living", "small", "", 0), loaded)
    kept_checkpoint(resumable_runs(data_folder)[0])
    return tracker, path / "owner.json"


def test_a_run_that_the_store_does_not_have_stays_its_owners(
    data_folder: DataFolder, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(data_folder, "a" * 32, load_curriculum(file))
    set_alive(run)
    owner = (run.folder.path / "owner.json").read_bytes()
    taken = []
    monkeypatch.setattr(run_folder, "take_hold", lambda *_: taken.append(1))
    take_over(data_folder, monkeypatch)
    assert (run.folder.path / "owner.json").read_bytes() == owner
    assert taken == []


def test_a_checkpoint_or_store_that_fails_is_found_before_the_run_is_taken(
    data_folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker, owner = living(data_folder)
    before = owner.read_bytes()

    def refuse(*_: Any) -> None:
        assert owner.read_bytes() == before
        raise LabError("the checkpoint does not fit")

    def down(*_: Any) -> None:
        raise StoreError("the store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr("aimbot_lab.tracking.mlflow_store.connect", down)
        take_over(data_folder, patch)
    with monkeypatch.context() as patch:
        take_over(data_folder, patch, refuse)
    tracker.log_metrics(10, {"a": 1.0})
    assert tracker.finish("KILLED").complete


def test_what_fails_after_the_take_over_gives_the_run_back(
    data_folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker, path = living(data_folder)
    tracker.log_metrics(10, {"a": 1.0})
    before, replace_file = path.read_bytes(), run_folder.replace_file

    def full(path: Path, content: bytes) -> None:
        if path.name == "journal.jsonl":
            raise OSError(28, "No space left on device")
        replace_file(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "replace_file", full)
        told = take_over(data_folder, patch)
    assert any("was given back" in line for line in told)
    assert path.read_bytes() == before
    assert [lock.name for lock in path.parent.glob("lock-*")] == [tracker._folder.owner.lock]
    tracker.log_metrics(20, {"a": 2.0})
    tracker.check_owner()
    assert tracker.finish("KILLED").complete
    assert [(run.status, run.metrics["a"]) for run in list_runs(data_folder)] == [("KILLED", 2.0)]
