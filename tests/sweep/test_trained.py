"""A training of a trial goes on from its checkpoint and is worth the same, to the last bit."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sweep_files import RACE, SWEEP, changed, loaded, params

from aimbot_lab.experiment.runs.run_record import resumable_runs
from aimbot_lab.foundation.episodes import WinRate
from aimbot_lab.sweep.document import LoadedSweep
from aimbot_lab.sweep.space import Params
from aimbot_lab.sweep.trained import standing
from aimbot_lab.sweep.trial import delete_checkpoints, measure
from aimbot_lab.sweep.trial_runs import TrialTraining
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs

VALUES = params(spin_penalty=0.3, in_area=7.0)


class Watch:
    """Follows a training, and ends it once it has taken `stop_at` steps."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.steps: list[int] = []
        self._stop_at = stop_at

    def should_stop(self) -> bool:
        return self._stop_at is not None and bool(self.steps) and self.steps[-1] >= self._stop_at

    def at(self, step: int, steps: int, value: float | None) -> None:
        self.steps.append(step)


def task_of(
    sweep: LoadedSweep, folder: Path, key: str | None, values: Params = VALUES
) -> TrialTraining:
    return TrialTraining(
        sweep=sweep.config,
        base=sweep.base,
        params=values,
        seed=5,
        evaluation_seed=6,
        episodes=10,
        name="one",
        tags={"lab.sweep": "small"},
        data_folder=DataFolder(folder),
        key=key,
    )


@pytest.fixture
def sweep() -> LoadedSweep:
    longer = changed(SWEEP, ("trials: 3", "trials: 3\noverrides: {train.total_steps: 1536}"))
    return loaded(longer)


def test_a_stopped_training_goes_on_and_is_worth_the_same(
    sweep: LoadedSweep, tmp_path: Path
) -> None:
    unbroken = Watch()
    whole = measure(task_of(sweep, tmp_path / "whole", None), unbroken)
    task = task_of(sweep, tmp_path / "broken", "sweep 1 search 0")
    assert measure(task, Watch(stop_at=1024)) is None
    assert [run.record.key for run in resumable_runs(task.data_folder)] == [task.key]
    rest = Watch()
    again = measure(task, rest)
    assert whole is not None
    assert again is not None
    assert (again.value, again.cells) == (whole.value, whole.cells)
    assert again.state_sha256 == whole.state_sha256
    assert [(run.run_id, run.status) for run in list_runs(task.data_folder)] == [
        (again.run_id, "FINISHED")
    ]
    assert not resumable_runs(task.data_folder)


def test_rewards_change_the_training_and_not_what_it_is_scored_by(
    sweep: LoadedSweep, tmp_path: Path
) -> None:
    """An agent that is not trained at all is worth the same under any reward."""
    untrained = changed(SWEEP, ("trials: 3", "trials: 3\noverrides: {train.learning_rate: 1e-30}"))
    task = task_of(loaded(untrained), tmp_path / "data", None)
    worth = [
        measure(replace(task, params=values), Watch())
        for values in (VALUES, params(spin_penalty=9.0, in_area=0.6))
    ]
    assert worth[0] is not None
    assert worth[1] is not None
    assert worth[0].cells == worth[1].cells
    assert worth[0].episodes == 10 * len(worth[0].cells) == 20


def test_steps_to_goal_says_whether_the_goal_was_reached(tmp_path: Path) -> None:
    scores = []
    for threshold in (0.01, 0.999):
        # Its last rollout reaches beyond the steps, which must not look like a difference.
        given = f"3000, lessons.0.completion_criteria.threshold: {threshold}"
        sweep = loaded(changed(RACE, ("4096", given)))
        assert not sweep.config.maximizes
        scores.append(measure(task_of(sweep, tmp_path / "data", None), Watch()))
    passed, spent = scores
    assert passed is not None
    assert spent is not None
    assert passed.value == passed.steps < 3000
    assert spent.value == 3000
    assert (passed.censored, spent.censored) == (False, True)


def test_a_training_that_is_given_up_leaves_no_checkpoints(
    sweep: LoadedSweep, tmp_path: Path
) -> None:
    task = task_of(sweep, tmp_path / "data", "sweep 1 search 0")
    assert measure(task, Watch(stop_at=1024)) is None
    assert resumable_runs(task.data_folder)
    delete_checkpoints(task)
    assert not resumable_runs(task.data_folder)


def test_a_training_in_a_later_lesson_stands_better_whatever_it_wins_there() -> None:
    """Else halving would prune what learns fastest, because harder lessons are won less often."""

    def stands(lesson: int, value: float | None, *, by_return: bool, lessons: int = 3) -> Any:
        stage: Any = SimpleNamespace(
            lesson=lesson, lessons=lessons, mean_return=value, win_rate=WinRate(value, 0.0, 1.0)
        )
        return standing(stage, by_return=by_return)

    for by_return, values in ((False, (0.0, 0.4, 1.0)), (True, (-5e5, -1.0, 0.0, 2.0, 1e6))):
        ranked = [stands(n, value, by_return=by_return) for n in range(3) for value in values]
        assert ranked == sorted(ranked)
        assert stands(2, None, by_return=by_return) is None
        alone = [stands(0, value, by_return=by_return, lessons=1) for value in values]
        assert alone == list(values)
