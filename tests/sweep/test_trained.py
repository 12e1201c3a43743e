"""A training of a trial goes on from its checkpoint and is worth the same, to the last bit."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sweep_files import RACE, SWEEP, VALUES, Watch, changed, loaded, params, task_of

from aimbot_lab.experiment.runs.run_record import resumable_runs
from aimbot_lab.foundation.episodes import WinRate
from aimbot_lab.sweep.document import LoadedSweep
from aimbot_lab.sweep.trained import standing
from aimbot_lab.sweep.trial import delete_checkpoints, measure
from aimbot_lab.tracking.history import list_runs


@pytest.fixture
def sweep() -> LoadedSweep:
    longer = changed(SWEEP, ("trials: 3", "trials: 3\noverrides: {train.total_steps: 1536}"))
    return loaded(longer)


def test_a_stopped_training_goes_on_and_is_worth_the_same(
    sweep: LoadedSweep, tmp_path: Path
) -> None:
    whole = measure(task_of(sweep, tmp_path / "whole"), Watch())
    task = task_of(sweep, tmp_path / "broken", "sweep 1 search 0")
    assert measure(task, Watch(stop_at=1024)) is None
    assert [run.record.key for run in resumable_runs(task.data_folder)] == [task.key]
    again = measure(task, Watch())
    assert whole is not None
    assert again is not None
    for name in ("value", "cells", "state_sha256"):
        assert getattr(again, name) == getattr(whole, name)
    (run,) = list_runs(task.data_folder)
    assert (run.run_id, run.status) == (again.run_id, "FINISHED")
    assert not resumable_runs(task.data_folder)


def test_rewards_change_the_training_and_not_what_it_is_scored_by(tmp_path: Path) -> None:
    """An agent that is not trained at all is worth the same under any reward."""
    untrained = "overrides: {train.learning_rate: 1e-30, train.total_steps: 512}"
    task = task_of(loaded(changed(SWEEP, ("trials: 3", f"trials: 3\n{untrained}"))), tmp_path)
    given = VALUES, params(spin_penalty=9.0, in_area=0.6)
    one, other = (measure(replace(task, params=values), Watch()) for values in given)
    assert one is not None
    assert other is not None
    assert one.cells == other.cells
    assert one.episodes == 10 * len(one.cells) == 20


def test_steps_to_goal_says_whether_the_goal_was_reached(tmp_path: Path) -> None:
    scores = []
    for threshold in (0.01, 0.999):
        # Its last rollout reaches beyond the steps, which must not look like a difference.
        given = f"3000, lessons.0.completion_criteria.threshold: {threshold}"
        sweep = loaded(changed(RACE, ("4096", given)))
        assert not sweep.config.maximizes
        scores.append(measure(task_of(sweep, tmp_path), Watch()))
    passed, spent = scores
    assert passed is not None
    assert spent is not None
    assert passed.value == passed.steps < 3000
    assert spent.value == 3000
    assert (passed.censored, spent.censored) == (False, True)


def test_a_training_that_is_given_up_leaves_no_checkpoints(
    sweep: LoadedSweep, tmp_path: Path
) -> None:
    task = task_of(sweep, tmp_path, "sweep 1 search 0")
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
