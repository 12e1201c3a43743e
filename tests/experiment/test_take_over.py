"""A take-over that fails leaves the run to the process that trains it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_resumable_runs import CURRICULUM, begun, kept_checkpoint, set_alive

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs import crew
from aimbot_lab.experiment.runs import run as run_module
from aimbot_lab.experiment.runs.crew import Crew
from aimbot_lab.experiment.runs.run_record import (
    RunRecord,
    RunRequest,
    resumable_runs,
    write_record,
)
from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.tracking import run_folder
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.worlds.registry import settings_with


@pytest.fixture
def data_folder(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.create()
    (tmp_path / "small.yaml").write_text(CURRICULUM, encoding="utf-8")
    return folder


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


def living(data_folder: DataFolder) -> Any:
    """The tracker of a run that this process trains, with a checkpoint."""
    loaded = load_curriculum(data_folder.root.parent / "small.yaml")
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("living"))
    path = data_folder.run_folder(tracker.run_id) / "checkpoints"
    write_record(path, RunRecord("living", "small", "", 0), loaded)
    kept_checkpoint(resumable_runs(data_folder)[0])
    return tracker


def test_a_run_that_the_store_does_not_have_stays_its_owners(
    data_folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(data_folder, "a" * 32, load_curriculum(data_folder.root.parent / "small.yaml"))
    set_alive(run)
    owner = (run.folder.path / "owner.json").read_bytes()
    taken = []
    monkeypatch.setattr(run_folder, "take_hold", lambda *_: taken.append(1))
    take_over(data_folder, monkeypatch)
    assert (run.folder.path / "owner.json").read_bytes() == owner
    assert taken == []


def test_a_checkpoint_that_does_not_fit_is_found_before_the_run_is_taken(
    data_folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = living(data_folder)
    owner = tracker._folder.path / "owner.json"
    before = owner.read_bytes()

    def refuse(*_: Any) -> None:
        assert owner.read_bytes() == before
        raise LabError("the checkpoint does not fit")

    take_over(data_folder, monkeypatch, refuse)
    tracker.log_metrics(10, {"a": 1.0})
    assert tracker.finish("KILLED").complete


def test_what_fails_after_the_take_over_gives_the_run_back(
    data_folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = living(data_folder)
    tracker.log_metrics(10, {"a": 1.0})
    path = tracker._folder.path / "owner.json"
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


def test_a_store_that_fails_before_the_take_over_changes_nothing(
    data_folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = living(data_folder)

    def down(*_: Any) -> None:
        raise StoreError("the store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr("aimbot_lab.tracking.mlflow_store.connect", down)
        take_over(data_folder, patch)
    tracker.log_metrics(10, {"a": 1.0})
    assert tracker.finish("KILLED").complete
