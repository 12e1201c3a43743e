"""A trial that is given up is given up once, whoever died on the way, and trains no more."""

from pathlib import Path

import pytest
from optuna.trial import TrialState
from sweep_files import SWEEP, Watcher, changed, loaded, taken

from aimbot_lab.sweep import trial as trial_module
from aimbot_lab.sweep.record import SweepRecord, begin
from aimbot_lab.sweep.storage import choose_storage, open_storage
from aimbot_lab.sweep.trial import run_trial
from aimbot_lab.sweep.trial_runs import (
    TrainingMonitor,
    TrialScore,
    TrialTraining,
    WorkerContext,
)
from aimbot_lab.tracking.data_folder import DataFolder

HALVING = changed(
    SWEEP, ("trials: 3", "trials: 9\npruner: {kind: halving, first_steps: 500, reduction: 2}")
)
STEPS = 1000


class Trainings:
    """In place of trainings: one win rate each, some of which end in their worker's death."""

    def __init__(self, rate: float, *, dies_at: int | None = None) -> None:
        self.begun = 0
        self._rate = rate
        self._dies_at = dies_at

    def __call__(self, task: TrialTraining, watch: TrainingMonitor) -> TrialScore | None:
        self.begun += 1
        for step in range(100, STEPS + 1, 100):
            watch.at(step, STEPS, self._rate)
            if step == self._dies_at:
                raise SystemExit
            if watch.should_stop() and step < STEPS:
                return None
        return TrialScore(seed=task.seed, value=self._rate, steps=STEPS, seconds=0.0)


@pytest.fixture
def record(tmp_path: Path) -> SweepRecord:
    storage = open_storage(choose_storage(DataFolder(tmp_path / "data"), "small", None))
    return begin(storage, loaded(HALVING), resume=False)


@pytest.fixture
def context(record: SweepRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkerContext:
    """A sweep whose first two trials, at 0.8, have ended."""
    context = WorkerContext(record, DataFolder(tmp_path / "data"), None, Watcher())
    monkeypatch.setattr(trial_module, "measure", Trainings(0.8))
    for _ in range(2):
        queue = record.search_queue()
        run_trial(context, queue, taken(queue), "search")
    return context


@pytest.mark.parametrize("at_its_end", [False, True])
def test_who_lags_behind_is_given_up_at_once_and_begins_no_other_training(
    context: WorkerContext,
    record: SweepRecord,
    monkeypatch: pytest.MonkeyPatch,
    at_its_end: bool,
) -> None:
    trainings, queue = Trainings(0.1), record.search_queue()
    if at_its_end:
        monkeypatch.setattr(trial_module, "rungs", lambda _sweep, _steps: [STEPS])
    monkeypatch.setattr(trial_module, "measure", trainings)
    run_trial(context, queue, taken(queue), "search")
    assert [trial.state for trial in queue.trials][2:] == [TrialState.PRUNED]
    assert trainings.begun == 1


def test_a_worker_that_dies_as_it_gives_up_changes_nothing(
    context: WorkerContext, record: SweepRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = record.search_queue()
    claim = taken(queue)
    monkeypatch.setattr(trial_module, "measure", Trainings(0.1, dies_at=500))
    with pytest.raises(SystemExit):
        run_trial(context, queue, claim, "search")
    queue.give_back(claim)
    monkeypatch.setattr(trial_module, "measure", Trainings(0.1))
    run_trial(context, queue, taken(queue), "search")
    assert queue.trials[2].state == TrialState.PRUNED
    assert queue.trials[2].user_attrs["mean_so_far"] is None


def test_a_training_that_breaks_down_fails_its_trial_and_nothing_else(
    context: WorkerContext, record: SweepRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(_task: TrialTraining, _watch: TrainingMonitor) -> TrialScore:
        raise MemoryError("9 GB wanted")

    queue = record.search_queue()
    monkeypatch.setattr(trial_module, "measure", break_down)
    run_trial(context, queue, taken(queue), "search")
    assert queue.trials[2].state == TrialState.FAIL
    assert queue.trials[2].user_attrs["reason"] == "MemoryError: 9 GB wanted"
