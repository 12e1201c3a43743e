"""Trainings that are scored: by evaluation episodes that no reward weight touches, or by steps."""

from collections.abc import Callable
from dataclasses import replace

from aimbot_lab.evaluation.evaluate import CellScore, score_cell
from aimbot_lab.evaluation.temperature import LIKELIEST, SAMPLED
from aimbot_lab.experiment.judging.task import last_lesson, play_task, player_at
from aimbot_lab.experiment.runs.request import RunRequest
from aimbot_lab.experiment.runs.result import RunResult, cell_name
from aimbot_lab.experiment.runs.resumable_runs import UnfinishedRun, unfinished_runs
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.sweep.trial_training import Score, Task, Watch
from aimbot_lab.tracking.tracker import Tracker
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.observer import SilentObserver, TrainingSnapshot
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.spec import arena_spec

EVALUATION = "eval/"


def win_rate(task: Task, watch: Watch) -> Score | None:
    """The share of evaluation episodes that the trained agent wins; None where it was ended."""
    cells: list[CellScore] = []

    def play(training: Training, tracker: Tracker) -> None:
        cells.extend(_played(task, training))
        rates = {f"{EVALUATION}win_rate/{_name(cell)}": cell.win_rate for cell in cells}
        mean = sum(rates.values()) / len(rates)
        tracker.log_metrics(training.model.num_timesteps, {**rates, f"{EVALUATION}win_rate": mean})

    result = _trained(task, watch, play)
    if result.status == "KILLED":
        return None
    return replace(
        _score(task, result),
        value=sum(cell.win_rate for cell in cells) / len(cells),
        episodes=sum(cell.episodes for cell in cells),
        wins=sum(cell.wins for cell in cells),
        cells={_name(cell): cell.win_rate for cell in cells},
    )


def steps_to_goal(task: Task, watch: Watch) -> Score | None:
    """The steps until the last lesson passed; None where it was ended.

    Where it did not pass these are all steps, and the score says that it takes more. What the last
    rollout takes beyond train.total_steps does not count: its length may be searched.
    """
    result = _trained(task, watch, lambda _training, _tracker: None)
    if result.status == "KILLED":
        return None
    value = min(result.steps, task.base.config.train.total_steps)
    return replace(_score(task, result), value=float(value), censored=result.status == "FAILED")


def forget(task: Task) -> None:
    """Delete the checkpoints of `task`, which nobody will go on with."""
    if task.key is not None:
        for run in unfinished_runs(task.data_folder, key=task.key):
            run.folder.forget_checkpoints()


class _Observer(SilentObserver):
    """Passes on where a training stands."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def progress(self, snapshot: TrainingSnapshot) -> None:
        """Pass it on."""
        self._watch.at(snapshot.step, snapshot.total_steps, snapshot.view.win_rate.win_rate)


def _trained(task: Task, watch: Watch, after: Callable[[Training, Tracker], None]) -> RunResult:
    """The training of `task`, from its last checkpoint where there is one."""
    before = _unfinished(task)
    try:
        result = _run(task, watch, after, resume=before)
    except StoreError:
        if before is None:
            raise
        result = _run(task, watch, after, resume=None)  # its run was deleted, for example
    if result.status != "KILLED":
        forget(task)
    return result


def _run(
    task: Task,
    watch: Watch,
    after: Callable[[Training, Tracker], None],
    *,
    resume: UnfinishedRun | None,
) -> RunResult:
    request = RunRequest(
        task.curriculum(),
        task.data_folder,
        task.name,
        task.tracking_uri,
        resume=resume,
        key=task.key,
        tags=task.tags,
    )
    return run_curriculum(
        request, _Observer(watch), should_stop=watch.should_stop, after_training=after
    )


def _unfinished(task: Task) -> UnfinishedRun | None:
    """What is left of `task` on this machine; None where it has to begin anew."""
    if task.key is None:
        return None
    left = unfinished_runs(task.data_folder, key=task.key)
    return next((run for run in left if not run.alive and run.record.spent_steps is None), None)


def _score(task: Task, result: RunResult) -> Score:
    """The score of a training by its steps."""
    return Score(
        seed=task.seed,
        value=float(result.steps),
        steps=result.steps,
        seconds=result.seconds,
        run_id=result.run_id,
        state_sha256=result.state_sha256,
    )


def _played(task: Task, training: Training) -> list[CellScore]:
    """How the agent does in the base curriculum's last lesson, whatever arena it learned in.

    Of its own arena it keeps what it sees with. It acts as in training, on seeds that no training
    can have; every cell has as many episodes.
    """
    base, plan = task.base.config, training.plan
    lesson = last_lesson(base, episodes=task.episodes, seed=task.evaluation_seed)
    eyes = {name: getattr(plan.env, name) for name in ("rays", "stacked_vectors")}
    lesson = replace(lesson, env=replace(lesson.env, **eyes))
    agent = Agent(training.model.policy, arena_spec(lesson.env), plan.train)
    as_trained = SAMPLED if agent.samples else LIKELIEST
    way = player_at(SavedAgent(agent, lesson.env, plan.train, {}), as_trained)
    return [score_cell(played) for played in play_task(lesson, way, on_cell=lambda _cell: None)]


def _name(cell: CellScore) -> str:
    return cell_name(cell.target, cell.difficulty).replace(" ", "/")
