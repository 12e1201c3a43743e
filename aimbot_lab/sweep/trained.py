"""Trainings that are scored: by evaluation episodes that no reward weight touches, or by steps."""

from collections.abc import Callable
from dataclasses import replace

from aimbot_lab.curriculum.cells import lesson_cells
from aimbot_lab.curriculum.reports import LessonReport
from aimbot_lab.evaluation.evaluate import CellScore, evaluate
from aimbot_lab.experiment.result import RunResult, cell_name
from aimbot_lab.experiment.run import RunRequest, run_curriculum
from aimbot_lab.faces.registry import make_world
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.sweep.task import Score, Task, Watch
from aimbot_lab.tracking.tracker import Tracker
from aimbot_lab.training.agent import Agent
from aimbot_lab.training.observer import TrainingSnapshot
from aimbot_lab.training.training import Training

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
    """The steps until the last lesson passed, or all steps; None where it was ended."""
    result = _trained(task, watch, lambda _training, _tracker: None)
    return None if result.status == "KILLED" else _score(task, result)


class _Observer:
    """Passes on where a training stands."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def stage(self, text: str) -> None:
        """Nothing to pass on."""

    def promotion(self, report: LessonReport, step: int) -> None:
        """Nothing to pass on."""

    def progress(self, snapshot: TrainingSnapshot) -> None:
        """Pass it on."""
        self._watch.at(snapshot.step, snapshot.total_steps, snapshot.view.win_rate.win_rate)


def _trained(task: Task, watch: Watch, after: Callable[[Training, Tracker], None]) -> RunResult:
    request = RunRequest(
        task.curriculum(), task.data_folder, task.name, task.tracking_uri, tags=task.tags
    )
    return run_curriculum(
        request, _Observer(watch), should_stop=watch.should_stop, after_training=after
    )


def _score(task: Task, result: RunResult) -> Score:
    """The score of a training by its steps; one that spent them all counts with all of them."""
    return Score(
        seed=task.seed,
        value=float(result.steps),
        steps=result.steps,
        seconds=result.seconds,
        run_id=result.run_id,
        state_sha256=result.state_sha256,
    )


def _played(task: Task, training: Training) -> list[CellScore]:
    """How the agent does in the base curriculum's arena, whatever arena it learned in.

    Of its own arena it keeps what it sees with. Every cell has as many episodes.
    """
    base, own = task.base.config, training.plan.env
    env = replace(
        base.env, num_envs=task.episodes, rays=own.rays, stacked_vectors=own.stacked_vectors
    )
    world = make_world(env)
    agent = Agent(training.model.policy, world.spec, training.plan.train)
    cells = lesson_cells(base.lessons[-1], world.spec.difficulties)
    seed = derive_seed(task.evaluation_seed, "episodes")
    return [
        score
        for cell in cells  # each with a player that remembers nothing of the cell before
        for score in evaluate(world, agent.player(world), (cell,), seed=seed)
    ]


def _name(cell: CellScore) -> str:
    return cell_name(cell.target, cell.difficulty).replace(" ", "/")
