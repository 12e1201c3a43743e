"""An abort tells the truth about the run that it leaves."""

from pathlib import Path
from typing import Any

import pytest

import aimbot_lab.experiment.runs.run as experiment_run
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.run import RunRequest, run_curriculum
from aimbot_lab.foundation.errors import AbortedError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.tracker import FinishReport, MemoryTracker, RunStatus
from aimbot_lab.training.run_hooks import SilentObserver

CURRICULUM = """
name: tiny
env: {num_envs: 2}
lessons:
  - {name: only, targets: {goto: 1}, completion_criteria: {threshold: 0.9}}
train: {total_steps: 8, n_steps: 2, batch_size: 2, n_epochs: 1, torch_threads: 1}
"""


class SlowTracker(MemoryTracker):
    """A tracker whose store does not take everything in time, or is not waited for."""

    def __init__(self, *, interrupted: bool) -> None:
        super().__init__()
        self._interrupted = interrupted

    def finish(self, status: RunStatus, *, wait_seconds: float = 20.0) -> FinishReport:
        if self._interrupted:
            raise KeyboardInterrupt
        return FinishReport(status, waiting=3)


class ImpatientTracker(MemoryTracker):
    """A tracker that is interrupted while it waits for its store."""

    def finish(self, status: RunStatus, *, wait_seconds: float = 20.0) -> FinishReport:
        waits = self.status is None
        report = super().finish(status)
        if waits:
            raise KeyboardInterrupt
        return report


class InterruptedAt(SilentObserver):
    """Presses Ctrl-C when a stage begins."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def stage(self, text: str) -> None:
        if text == self._stage:
            raise KeyboardInterrupt


def interrupt(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


@pytest.fixture
def request_(tmp_path: Path) -> RunRequest:
    file = tmp_path / "tiny.yaml"
    file.write_text(CURRICULUM, encoding="utf-8")
    (tmp_path / "data").mkdir()
    return RunRequest(load_curriculum(file, ()), DataFolder(tmp_path / "data"))


def aborted(
    request: RunRequest,
    tracker: MemoryTracker,
    monkeypatch: pytest.MonkeyPatch,
    *,
    stage: str = "",
    **options: Any,
) -> str:
    """What an abort tells."""
    monkeypatch.setattr(experiment_run, "open_run", lambda *_, **__: tracker)
    should_stop = options.get("should_stop", lambda: False)
    with pytest.raises(AbortedError) as raised:
        run_curriculum(request, InterruptedAt(stage), should_stop=should_stop)
    assert raised.value.exit_code == 130
    return str(raised.value)


def test_a_training_that_is_aborted_is_closed_as_killed_and_unsaved(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = MemoryTracker()
    told = aborted(request_, tracker, monkeypatch, should_stop=interrupt)
    assert told == "aborted: run memory is closed as KILLED, its agent was not saved"
    assert tracker.status == "KILLED"
    assert not any(name.startswith("agent/") for name in tracker.artifacts)


@pytest.mark.parametrize("stage", ["training", "saving"])
def test_so_is_one_before_the_first_step_and_one_while_saving(
    stage: str, request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = aborted(request_, MemoryTracker(), monkeypatch, stage=stage)
    assert told == "aborted: run memory is closed as KILLED, its agent was not saved"


def test_once_the_agent_is_saved_an_abort_says_so(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = MemoryTracker()
    monkeypatch.setattr(experiment_run, "note", interrupt)
    told = aborted(request_, tracker, monkeypatch)
    assert told == "aborted: run memory is closed as KILLED, its agent is saved"
    assert "agent/last/agent.safetensors" in tracker.artifacts


def test_a_run_that_had_ended_keeps_its_status(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = aborted(request_, ImpatientTracker(), monkeypatch)
    assert told == "aborted: run memory is closed as FAILED, its agent is saved"


@pytest.mark.parametrize(
    ("interrupted", "wanted"),
    [
        (False, "is closed as KILLED by the next `aimbot-lab runs`"),
        (True, "is closed by the next `aimbot-lab runs`"),
    ],
)
def test_what_the_store_has_not_taken_is_not_claimed(
    interrupted: bool, wanted: str, request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = SlowTracker(interrupted=interrupted)
    assert wanted in aborted(request_, tracker, monkeypatch, should_stop=interrupt)


def test_before_there_is_a_run_an_interrupt_stays_one(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_run, "open_run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_curriculum(request_, SilentObserver(), should_stop=lambda: False)
