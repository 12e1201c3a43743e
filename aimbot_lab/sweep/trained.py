"""Trainings that are scored: by evaluation episodes that no reward weight touches, or by steps.

torch is loaded with them, in the processes that train alone.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from aimbot_lab.curriculum.reports import CurriculumView
from aimbot_lab.evaluation.episodes import CellScore, score_cell
from aimbot_lab.evaluation.temperature import LIKELIEST, SAMPLED
from aimbot_lab.experiment.analysis.evaluation import last_lesson, play_task, player_at
from aimbot_lab.experiment.runs.result import RunResult
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.experiment.runs.run_record import ResumableRun, RunRequest, resumable_runs
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import RunFailedError, StoreError
from aimbot_lab.foundation.garbage import free_training
from aimbot_lab.sweep.settings import RETURN
from aimbot_lab.sweep.trial_runs import (
    TrainingMonitor,
    TrialScore,
    TrialTraining,
    delete_checkpoints,
)
from aimbot_lab.tracking.tracker import Tracker
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.run_hooks import SilentObserver, TrainingSnapshot
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import spec_of, with_shape_of


def score_by_episodes(trial_training: TrialTraining, monitor: TrainingMonitor) -> TrialScore | None:
    """The share of evaluation episodes that the trained agent wins, or their mean return.

    None where the training was ended. Raises RunFailedError where the world reports no returns.
    """
    cells: list[CellScore] = []
    by_return = trial_training.sweep.measure is RETURN
    metric = names.TEST_RETURN if by_return else names.TEST_WIN_RATE

    def worth(cell: CellScore) -> float:
        value = cell.mean_return if by_return else cell.win_rate
        if value is None:
            raise RunFailedError(
                "objective.measure: the world reports no returns: measure win_rate"
            )
        return value

    def play(training: Training, tracker: Tracker) -> None:
        cells.extend(_played(trial_training, training))
        values = {
            names.of_cell(metric, Cell(cell.target, cell.difficulty)): worth(cell) for cell in cells
        }
        mean = sum(values.values()) / len(values)
        tracker.log_metrics(0, {**values, metric: mean})  # step 0 as `evaluate` does

    result = _trained(trial_training, monitor, play)
    if result.status == "KILLED":
        return None
    return replace(
        _score(trial_training, result),
        value=sum(map(worth, cells)) / len(cells),
        episodes=sum(cell.episodes for cell in cells),
        wins=None if by_return else sum(cell.wins for cell in cells),
        cells={
            Cell(one.target, one.difficulty).shown.replace(" ", "/"): worth(one) for one in cells
        },
    )


def steps_to_goal(trial_training: TrialTraining, monitor: TrainingMonitor) -> TrialScore | None:
    """The steps until the last lesson passed; None where it was ended.

    Where it did not pass these are all steps, and the score says that it takes more. What the last
    rollout takes beyond train.total_steps does not count: its length may be searched.
    """
    result = _trained(trial_training, monitor, lambda _training, _tracker: None)
    if result.status == "KILLED":
        return None
    value = min(result.steps, trial_training.base.config.train.total_steps)
    return replace(
        _score(trial_training, result), value=float(value), censored=result.status == "FAILED"
    )


class _Observer(SilentObserver):
    """Passes on where a training stands."""

    def __init__(self, monitor: TrainingMonitor, *, by_return: bool) -> None:
        self._monitor, self._by_return = monitor, by_return

    def progress(self, snapshot: TrainingSnapshot) -> None:
        """Pass it on."""
        value = standing(snapshot.view, by_return=self._by_return)
        self._monitor.at(snapshot.step, snapshot.total_steps, value)


def standing(view: CurriculumView, *, by_return: bool) -> float | None:
    """How well a training stands, None where the present lesson has had no episodes yet.

    Of several lessons the number of those passed comes first, because later ones are harder: it is
    added to the win rate, or to the mean return mapped from 0 to 1.
    """
    value = view.mean_return if by_return else view.win_rate.win_rate
    if value is None or view.lessons == 1:
        return value
    return view.lesson + (0.5 + math.atan(value) / math.pi if by_return else value)


def _trained(
    trial_training: TrialTraining,
    monitor: TrainingMonitor,
    after: Callable[[Training, Tracker], None],
) -> RunResult:
    """The training of `trial_training`, from its last checkpoint where there is one."""
    before = _unfinished(trial_training)
    try:
        result = _run(trial_training, monitor, after, resume=before)
    except StoreError:
        if before is None:
            raise
        result = _run(
            trial_training, monitor, after, resume=None
        )  # its run was deleted, for example
    if result.status != "KILLED":
        delete_checkpoints(trial_training)
    return result


def _run(
    trial_training: TrialTraining,
    monitor: TrainingMonitor,
    after: Callable[[Training, Tracker], None],
    *,
    resume: ResumableRun | None,
) -> RunResult:
    request = RunRequest(
        trial_training.curriculum(),
        trial_training.data_folder,
        trial_training.name,
        trial_training.tracking_uri,
        resume=resume,
        key=trial_training.key,
        tags=trial_training.tags,
    )
    observer = _Observer(monitor, by_return=trial_training.sweep.measure is RETURN)
    try:
        return run_curriculum(
            request, observer, should_stop=monitor.should_stop, after_training=after
        )
    finally:
        free_training()  # before this process begins another


def _unfinished(trial_training: TrialTraining) -> ResumableRun | None:
    """The resumable run of `trial_training` on this machine; None where it has to start again.

    A world without snapshots begins new episodes after a checkpoint: another result than that of
    an unbroken training.
    """
    env = trial_training.curriculum().config.env
    if trial_training.key is None or not spec_of(env).can("snapshot"):
        return None
    left = resumable_runs(trial_training.data_folder, key=trial_training.key)
    return next((run for run in left if not run.alive and run.record.spent_steps is None), None)


def _score(trial_training: TrialTraining, result: RunResult) -> TrialScore:
    """The score of a training by its steps."""
    return TrialScore(
        seed=trial_training.seed,
        value=float(result.steps),
        steps=result.steps,
        seconds=result.seconds,
        run_id=result.run_id,
        state_sha256=result.state_sha256,
    )


def _played(trial_training: TrialTraining, training: Training) -> list[CellScore]:
    """How the agent does in the base curriculum's last lesson, whatever arena it learned in.

    Of its own arena it keeps what it sees with. It acts as in training, on seeds that no training
    can have; every cell has as many episodes.
    """
    base, plan = trial_training.base.config, training.plan
    lesson = last_lesson(
        base, episodes=trial_training.episodes, seed=trial_training.evaluation_seed
    )
    lesson = replace(lesson, env=with_shape_of(lesson.env, plan.env))
    agent = Agent(training.model.policy, spec_of(lesson.env), plan.train)
    as_trained = SAMPLED if agent.samples else LIKELIEST
    way = player_at(agent, as_trained)
    return [score_cell(played) for played in play_task(lesson, way, on_cell=lambda _cell: None)]
