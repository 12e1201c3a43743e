"""A trial that falls behind is given up, once and at once, whoever died on the way."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from optuna.trial import TrialState
from sweep_files import RACE, SWEEP, Watcher, begun_in, changed, taken

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep import trial as trial_module
from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.sweep.report import power, report
from aimbot_lab.sweep.schedules import steps_allowed
from aimbot_lab.sweep.trial import run_trial
from aimbot_lab.sweep.trial_queue import TrialQueue
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
RACING = changed(RACE, ("best: 1, seeds: 2", "best: 1, seeds: 8"))
STEPS = 1000  # of a training that is worth its win rate
ALL_STEPS = 3000  # of one that is worth its steps to the goal


class Trainings:
    """In place of trainings: each takes its number of steps, or never passes.

    With a `rate`, each takes as many steps and has that win rate.
    """

    def __init__(
        self,
        *steps: int | None,
        rate: float | None = None,
        dies_at: int | None = None,
        looks: Sequence[int] = (),
    ) -> None:
        self.begun = 0
        self.last_look = 0
        self._steps, self._rate, self._dies_at, self._looks = steps, rate, dies_at, looks

    def __call__(self, task: TrialTraining, watch: TrainingMonitor) -> TrialScore | None:
        needed = STEPS if self._rate is not None else self._steps[self.begun]
        self.begun += 1
        end = needed or ALL_STEPS
        for step in self._looks or range(100, end + 1, 100):
            self.last_look = step
            watch.at(step, ALL_STEPS if self._rate is None else STEPS, self._rate or 0.5)
            if step == self._dies_at:
                raise SystemExit
            if watch.should_stop() and step < end:
                return None
        return TrialScore(
            seed=task.seed,
            value=float(end) if self._rate is None else self._rate,
            steps=end,
            seconds=0.0,
            censored=needed is None,
        )


Run = Callable[..., TrialQueue]


@pytest.fixture
def halving(tmp_path: Path) -> SweepRecord:
    return begun_in(tmp_path, HALVING)


@pytest.fixture
def racing(tmp_path: Path) -> SweepRecord:
    return begun_in(tmp_path, RACING)


def runner(record: SweepRecord, folder: Path, patch: pytest.MonkeyPatch) -> Run:
    """What runs the next trial by the trainings that it is given."""
    context = WorkerContext(record, DataFolder(folder / "data"), None, Watcher())
    patch.setattr(trial_module, "delete_checkpoints", lambda _task: None)

    def run(trainings: Callable[..., TrialScore | None], stage: str = "search") -> TrialQueue:
        queue = record.search_queue() if stage == "search" else record.confirm_queue()
        claim = taken(queue)
        assert queue is not None
        patch.setattr(trial_module, "measure", trainings)
        try:
            run_trial(context, queue, claim, stage)
        except SystemExit:
            queue.give_back(claim)
            raise
        return queue

    return run


@pytest.fixture
def halve(halving: SweepRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs trials of a sweep whose first two, at 0.8, have ended."""
    run = runner(halving, tmp_path, monkeypatch)
    for _ in range(2):
        run(Trainings(rate=0.8))
    return run


@pytest.fixture
def race(racing: SweepRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Of one whose first took 800 and 1200 steps to the goal; its limit is 1500."""
    run = runner(racing, tmp_path, monkeypatch)
    run(Trainings(800, 1200))
    return run


@pytest.mark.parametrize("at_its_end", [False, True])
def test_who_lags_behind_is_given_up_at_once_and_begins_no_other_training(
    halve: Run, monkeypatch: pytest.MonkeyPatch, at_its_end: bool
) -> None:
    if at_its_end:
        monkeypatch.setattr(trial_module, "rungs", lambda _sweep, _steps: [STEPS])
    trainings = Trainings(rate=0.1)
    assert [trial.state for trial in halve(trainings).trials][2:] == [TrialState.PRUNED]
    assert trainings.begun == 1


def test_a_worker_that_dies_as_it_gives_up_changes_nothing(halve: Run) -> None:
    with pytest.raises(SystemExit):
        halve(Trainings(rate=0.1, dies_at=500))
    trial = halve(Trainings(rate=0.1)).trials[2]
    assert (trial.state, trial.user_attrs["mean_so_far"]) == (TrialState.PRUNED, None)


def test_a_training_that_breaks_down_fails_its_trial_and_nothing_else(halve: Run) -> None:
    def break_down(_task: TrialTraining, _watch: TrainingMonitor) -> TrialScore:
        raise MemoryError("9 GB wanted")

    trial = halve(break_down).trials[2]
    assert trial.state == TrialState.FAIL
    assert trial.user_attrs["reason"] == "MemoryError: 9 GB wanted"


@pytest.mark.parametrize(("first", "begun", "last_look"), [(None, 1, 1600), (1400, 2, 1700)])
def test_who_takes_more_steps_than_the_best_by_the_margin_is_given_up_on_the_way(
    race: Run, racing: SweepRecord, first: int | None, begun: int, last_look: int
) -> None:
    """By all steps so far, in a later training too; it counts with what it exceeds."""
    trainings = Trainings(first, None)
    assert race(trainings).trials[1].state == TrialState.PRUNED
    assert (trainings.begun, trainings.last_look) == (begun, last_look)
    shown = report(racing).trials[1]
    assert (shown.state, shown.value, shown.at_least) == ("given up", 1500.0, True)


def test_the_first_training_may_be_slow_where_the_second_makes_up_for_it(race: Run) -> None:
    trial = race(Trainings(1400, 500)).trials[1]
    assert (trial.state, trial.value) == (TrialState.COMPLETE, 950.0)


def test_a_racer_whose_worker_dies_or_who_passes_unseen_is_given_up_all_the_same(
    race: Run,
) -> None:
    """Whoever goes on from a checkpoint looks at other steps than the one before."""
    with pytest.raises(SystemExit):
        race(Trainings(None, dies_at=1600))
    race(Trainings(None, looks=(1570,)))
    for trial in race(Trainings(1400, 1601, looks=(100,))).trials[1:]:
        assert (trial.state, trial.user_attrs["mean_so_far"]) == (TrialState.PRUNED, 1500.0)


def test_the_limit_comes_from_trials_that_the_values_were_chosen_from(
    race: Run, racing: SweepRecord
) -> None:
    trials = race(Trainings(500, 500)).trials
    for known, limit in ((0, None), (1, 1500.0), (2, 750.0)):
        assert steps_allowed(racing.config, trials, known) == limit


def test_power_is_simulated_from_what_the_defaults_took_on_fresh_seeds(
    race: Run, racing: SweepRecord
) -> None:
    with pytest.raises(ConfigurationError, match="8 seeds or more, too few"):
        power(racing)
    for _ in range(2):
        race(Trainings(700, 900))
    while not race(Trainings(*range(900, 1100, 25)), "confirm").is_done():
        pass
    found = power(racing)
    assert found[1.0] < 0.1
    assert found[1.3] > 0.9
    assert list(found.values())[1:] == sorted(list(found.values())[1:])
