"""Trials race to the goal: who has taken too many steps is given up, whoever died on the way."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from optuna.trial import TrialState
from sweep_files import RACE, Watcher, changed, loaded, taken

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep import trial as trial_module
from aimbot_lab.sweep.record import SweepRecord, begin
from aimbot_lab.sweep.report import power, report
from aimbot_lab.sweep.schedules import steps_allowed
from aimbot_lab.sweep.space import view
from aimbot_lab.sweep.storage import choose_storage, open_storage
from aimbot_lab.sweep.trial import run_trial
from aimbot_lab.sweep.trial_queue import TrialQueue
from aimbot_lab.sweep.trial_runs import (
    TrainingMonitor,
    TrialScore,
    TrialTraining,
    WorkerContext,
)
from aimbot_lab.tracking.data_folder import DataFolder

ALL_STEPS = 3000


class Trainings:
    """In place of trainings: each takes its number of steps, or never passes."""

    def __init__(
        self, *steps: int | None, dies_at: int | None = None, looks: Sequence[int] = ()
    ) -> None:
        self.begun = 0
        self.last_look = 0
        self._steps, self._dies_at, self._looks = steps, dies_at, looks

    def __call__(self, task: TrialTraining, watch: TrainingMonitor) -> TrialScore | None:
        needed = self._steps[self.begun]
        self.begun += 1
        end = ALL_STEPS if needed is None else needed
        for step in self._looks or range(100, end, 100):
            self.last_look = step
            watch.at(step, ALL_STEPS, 0.5)
            if step == self._dies_at:
                raise SystemExit
            if watch.should_stop():
                return None
        return TrialScore(
            seed=task.seed, value=float(end), steps=end, seconds=0.0, censored=needed is None
        )


@pytest.fixture
def record(tmp_path: Path) -> SweepRecord:
    storage = open_storage(choose_storage(DataFolder(tmp_path / "data"), "small", None))
    text = changed(RACE, ("best: 1, seeds: 2", "best: 1, seeds: 8"))
    return begin(storage, loaded(text), resume=False)


@pytest.fixture
def context(record: SweepRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkerContext:
    """A sweep whose first trial took 800 and 1200 steps to the goal; its limit is 1500."""
    context = WorkerContext(record, DataFolder(tmp_path / "data"), None, Watcher())
    monkeypatch.setattr(trial_module, "measure", Trainings(800, 1200))
    monkeypatch.setattr(trial_module, "delete_checkpoints", lambda _task: None)
    queue = record.search_queue()
    run_trial(context, queue, taken(queue), "search")
    return context


def run(
    context: WorkerContext, trainings: Trainings, monkeypatch: pytest.MonkeyPatch
) -> TrialQueue:
    queue = context.record.search_queue()
    monkeypatch.setattr(trial_module, "measure", trainings)
    run_trial(context, queue, taken(queue), "search")
    return queue


@pytest.mark.parametrize(("first", "begun", "last_look"), [(None, 1, 1600), (1400, 2, 1700)])
def test_who_takes_more_steps_than_the_best_by_the_margin_is_given_up_on_the_way(
    context: WorkerContext,
    monkeypatch: pytest.MonkeyPatch,
    first: int | None,
    begun: int,
    last_look: int,
) -> None:
    """By all steps so far, in a later training too."""
    trainings = Trainings(first, None)
    queue = run(context, trainings, monkeypatch)
    assert queue.trials[1].state == TrialState.PRUNED
    assert (trainings.begun, trainings.last_look) == (begun, last_look)


def test_the_first_training_may_be_slow_where_the_second_makes_up_for_it(
    context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = run(context, Trainings(1400, 500), monkeypatch)
    assert (queue.trials[1].state, queue.trials[1].value) == (TrialState.COMPLETE, 950.0)


def test_a_worker_that_dies_on_the_way_changes_nothing(
    context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever goes on from a checkpoint looks at other steps than the one before."""
    queue = context.record.search_queue()
    claim = taken(queue)
    monkeypatch.setattr(trial_module, "measure", Trainings(None, dies_at=1600))
    with pytest.raises(SystemExit):
        run_trial(context, queue, claim, "search")
    queue.give_back(claim)
    run(context, Trainings(None, looks=(1570,)), monkeypatch)
    assert queue.trials[1].state == TrialState.PRUNED
    assert queue.trials[1].user_attrs["mean_so_far"] == 1500.0


def test_one_that_passes_unseen_above_the_limit_is_given_up_all_the_same(
    context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = run(context, Trainings(1400, 1601, looks=(100,)), monkeypatch)
    assert queue.trials[1].state == TrialState.PRUNED
    assert queue.trials[1].user_attrs["mean_so_far"] == 1500.0


def test_the_limit_comes_from_trials_that_the_values_were_chosen_from(
    context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = run(context, Trainings(500, 500), monkeypatch)
    config = context.record.config
    assert steps_allowed(config, queue.trials, 0) is None
    assert steps_allowed(config, queue.trials, 1) == 1500.0
    assert steps_allowed(config, queue.trials[:2], 2) == 750.0


def test_what_was_given_up_counts_with_what_it_is_known_to_exceed(
    context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = run(context, Trainings(None), monkeypatch)
    seen = view(context.record.config, queue.trials, 2).get_trials()
    assert [(one.state, one.value) for one in seen] == [
        (TrialState.COMPLETE, 1000.0),
        (TrialState.COMPLETE, 1500.0),
    ]
    shown = report(context.record).trials[1]
    assert (shown.state, shown.value, shown.at_least) == ("given up", 1500.0, True)


def test_power_is_simulated_from_what_the_defaults_took_on_fresh_seeds(
    record: SweepRecord, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="8 seeds or more, too few"):
        power(record)
    for _ in range(2):
        run(context, Trainings(700, 900), monkeypatch)
    queue = record.confirm_queue()
    assert queue is not None
    while not queue.is_done():
        monkeypatch.setattr(trial_module, "measure", Trainings(*range(900, 1100, 25)))
        run_trial(context, queue, taken(queue), "confirm")
    found = power(record)
    assert found[1.0] < 0.1
    assert found[1.3] > 0.9
    assert list(found.values())[1:] == sorted(list(found.values())[1:])


def test_steps_that_were_spent_are_shown_as_a_lower_bound(
    context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(context, Trainings(400, None, looks=(300,)), monkeypatch)
    monkeypatch.setattr(trial_module, "steps_allowed", lambda *_: None)
    run(context, Trainings(400, None), monkeypatch)
    shown = report(context.record).trials[2]
    assert (shown.value, shown.at_least, shown.lower) == (1700.0, True, None)
    assert [score["censored"] for score in shown.trainings] == [False, True]
