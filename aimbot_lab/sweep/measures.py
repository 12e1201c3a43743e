"""What a training under a trial's values is worth, by the name of the measure."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import exp, log
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from aimbot_lab.curriculum.cells import lesson_cells
from aimbot_lab.curriculum.reports import LessonReport
from aimbot_lab.evaluation.evaluate import CellScore, evaluate
from aimbot_lab.experiment.document import LoadedCurriculum, parse_curriculum
from aimbot_lab.experiment.result import RunResult, cell_name
from aimbot_lab.experiment.run import RunRequest, run_curriculum
from aimbot_lab.faces.registry import make_world
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.sweep.settings import Choices, Dimension, SweepFile
from aimbot_lab.sweep.space import Params, overrides
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.tracker import Tracker
from aimbot_lab.training.agent import Agent
from aimbot_lab.training.observer import TrainingSnapshot
from aimbot_lab.training.training import Training

POLL_SECONDS = 0.05
BEST_RATE = 0.95  # planted: the win rate at the optimum
STEEPNESS = 8.0  # planted: how fast it falls off
EVALUATION = "eval/"


@dataclass(frozen=True)
class Task:
    """One training of a trial, and how it is scored."""

    sweep: SweepFile
    base: LoadedCurriculum
    params: Params
    seed: int
    evaluation_seed: int
    episodes: int
    name: str  # of its run
    tags: Mapping[str, str]
    data_folder: DataFolder
    tracking_uri: str | None = None

    def curriculum(self) -> LoadedCurriculum:
        """What is trained."""
        given = [*overrides(self.params, self.sweep.search), f"seed={self.seed}"]
        return parse_curriculum(self.base.resolved_text, str(self.base.path), given)


@dataclass(frozen=True)
class Score:
    """What one training was worth."""

    seed: int
    value: float
    steps: int
    seconds: float
    episodes: int = 0
    wins: int = 0
    cells: Mapping[str, float] = field(default_factory=dict)  # win rate by target and difficulty
    run_id: str | None = None
    state_sha256: str | None = None  # of all that was learned

    def as_attribute(self) -> dict[str, Any]:
        """Plain values for the storage."""
        return {**asdict(self), "cells": dict(self.cells)}


class Watch(Protocol):
    """Someone who follows a training, and may end it."""

    def should_stop(self) -> bool:
        """Whether it is to end now, unfinished."""
        ...

    def at(self, step: int, steps: int, win_rate: float | None) -> None:
        """It has taken `step` of `steps`."""
        ...


def measure(task: Task, watch: Watch) -> Score | None:
    """What the training of `task` is worth by its sweep's measure; None where it was ended."""
    return MEASURES[task.sweep.objective.measure](task, watch)


def _win_rate(task: Task, watch: Watch) -> Score | None:
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


def _steps_to_goal(task: Task, watch: Watch) -> Score | None:
    result = _trained(task, watch, lambda _training, _tracker: None)
    return None if result.status == "KILLED" else _score(task, result)


def _planted(task: Task, watch: Watch) -> Score | None:
    """Wins drawn at the rate that the distance to the optimum gives; the same luck for all."""
    began, seconds = time.monotonic(), task.sweep.objective.seconds
    while (gone := time.monotonic() - began) < seconds:
        if watch.should_stop():
            return None
        watch.at(int(1000 * gone), int(1000 * seconds), None)
        time.sleep(POLL_SECONDS)
    rate = planted_rate(task.sweep, task.params)
    luck = np.random.default_rng([task.seed, task.evaluation_seed]).random(task.episodes)
    wins = int((luck < rate).sum())
    return Score(
        seed=task.seed,
        value=wins / task.episodes,
        steps=0,
        seconds=gone,
        episodes=task.episodes,
        wins=wins,
        cells={"planted": wins / task.episodes},
    )


def planted_rate(sweep: SweepFile, params: Params) -> float:
    """The true win rate of the made-up task: 0.95 exp(-8 sum of z^2).

    z is a number's distance from its optimum as a share of its range, of the logarithms where the
    range is one of factors.
    """
    squares = (
        _distance(sweep.search[key], params[key], best) ** 2
        for key, best in sweep.objective.optimum.items()
    )
    return BEST_RATE * exp(-STEEPNESS * sum(squares))


def _distance(dimension: Dimension, value: float, best: float) -> float:
    if isinstance(dimension, Choices):
        return 0.0
    if dimension.log:
        return log(value / best) / log(dimension.high / dimension.low)
    return (value - best) / (dimension.high - dimension.low)


MEASURES: Mapping[str, Callable[[Task, Watch], Score | None]] = MappingProxyType(
    {"win_rate": _win_rate, "steps_to_goal": _steps_to_goal, "planted": _planted}
)


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
