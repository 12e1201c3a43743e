"""What a run will do: its plan, its checks, and how many episodes its lessons need.

How many a lesson needs at an assumed win rate is found by running the very test that ends it on
simulated episodes.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from math import ceil, inf
from typing import Any

import numpy as np
import numpy.typing as npt

from aimbot_lab.curriculum.evidence import EvidenceTest
from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson, cell_shares, lesson_scenario
from aimbot_lab.experiment.config.checks import rollout_product
from aimbot_lab.experiment.config.document import LoadedCurriculum, plain_settings
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.checks import (
    Shareable,
    UpdateCost,
    action_remarks,
    check_sharing,
    engine_summary,
    plan_remarks,
    shards_in,
    update_cost,
)
from aimbot_lab.training.networks.network_parts import Part, network_summary, part_remarks
from aimbot_lab.training.processes.exchange import share
from aimbot_lab.training.run_hooks import SilentObserver, TrainingSnapshot
from aimbot_lab.worlds.registry import seats_in, spec_of, type_of

FloatArray = npt.NDArray[np.float64]

LESSONS = 500  # simulated side by side
LONGEST = 10_000  # episodes of a simulated lesson
TOO_LONG = 1e12  # episodes of a whole lesson that no training plays
MAX_EPISODES = 40_000  # of all lessons that a forecaster simulates: about a second
CERTAIN = 0.97  # share of simulated lessons that have passed when the rest is not waited for
EVERY_LOOK = 64  # episodes up to which each is looked at; then each 64th part of the way
STEPS_UP = (0.05, 0.10, 0.20)  # from the threshold


@dataclass(frozen=True)
class Expectation:
    """What a lesson takes at an assumed true win rate, the same in every cell."""

    win_rate: float
    episodes: int | None  # median; None: more than are simulated, or than could be played


def assumed_win_rates(threshold: float) -> tuple[float, ...]:
    """Win rates above `threshold` that are worth a forecast; the last is 1, the agent that wins
    always."""
    above = [rate for step in STEPS_UP if (rate := round(threshold + step, 9)) < 1]
    return (*(above or [halfway(threshold)]), 1.0)


def halfway(threshold: float) -> float:
    """The win rate between `threshold` and 1."""
    return round((1 + threshold) / 2, 9)


class Forecaster:
    """Forecasts the lessons of one curriculum; each test is simulated once.

    It simulates `most_episodes` in all; what would need more is None.
    """

    def __init__(self, most_episodes: int = MAX_EPISODES) -> None:
        self._times: dict[tuple[float, float, float], FloatArray] = {}
        self._left = most_episodes

    def expect(
        self, criteria: CompletionCriteria, shares: Sequence[float], *, win_rate: float
    ) -> Expectation:
        """What a lesson takes whose cells get these `shares` of its episodes."""
        key = criteria.threshold, criteria.alpha, win_rate
        if key not in self._times:
            # Episodes until `test` passed [LESSONS], inf where it never did.
            test = EvidenceTest(*key[:2])
            source = np.random.default_rng(1)
            times = np.full(LESSONS, inf)
            evidence = test.start((LESSONS,))
            for episode, look in _looks(min(LONGEST, self._left)):
                evidence = test.fold(evidence, source.random(LESSONS) < win_rate)
                self._left -= 1
                if look:
                    passed = test.log_evidence(evidence) >= test.log_bound
                    times[passed & (times == inf)] = episode
                    if np.mean(times < inf) >= CERTAIN:
                        break
            self._times[key] = times
        whole = _whole_lessons(self._times[key], shares if criteria.every_cell else (1.0,))
        median = float(np.quantile(whole, 0.5, method="higher"))
        episodes = None if median > TOO_LONG else max(ceil(median), criteria.min_lesson_length)
        return Expectation(win_rate, episodes)


def _looks(count: int) -> Iterator[tuple[int, bool]]:
    """The numbers of `count` episodes, and which of them are looked at."""
    following = 1
    for episode in range(1, count + 1):
        yield episode, episode == following
        if episode == following:
            following += max(1, episode // EVERY_LOOK)


def _whole_lessons(times: FloatArray, shares: Sequence[float]) -> FloatArray:
    """Episodes of lessons [LESSONS] whose cells each take `times` of their own share."""
    source = np.random.default_rng(2)
    with np.errstate(divide="ignore", over="ignore"):  # a share of next to nothing takes for ever
        cells = [source.permutation(times) / share for share in shares]
    return np.asarray(np.max(cells, axis=0))


RARE = 0.02  # share of the episodes below which a cell that must pass makes a lesson long
SCALINGS = {
    "none": "as they are",
    "ranges": "by their declared bounds",
    "running": "by their running mean and deviation",
}
LARGE_BATCH = 16_384  # samples of a minibatch, above which learning takes many times the steps


@dataclass(frozen=True)
class PlannedCell:
    """A target at a difficulty, and its share of a lesson's episodes."""

    target: str
    difficulty: int  # 0: the target has none
    share: float


@dataclass(frozen=True)
class PlannedLesson:
    """One lesson: what is played, and how long its test takes at assumed win rates."""

    lesson: Lesson
    cells: tuple[PlannedCell, ...]
    expected: tuple[Expectation, ...]  # empty where no test of a win rate ends the lesson
    doubtful: Expectation | None  # at the win rate between the threshold and 1


@dataclass(frozen=True)
class SharingPlan:
    """What each process of a shared training would hold."""

    shards: int
    processes: tuple[int, int]  # fewest and most

    def __str__(self) -> str:
        each = " or ".join(dict.fromkeys(map(self._each, self.processes)))
        return f"processes: {_range(*self.processes)}, each with {each} of {self.shards} shards"

    def _each(self, processes: int) -> str:
        sizes = [len(share(rank, processes, self.shards)) for rank in range(processes)]
        return _range(min(sizes), max(sizes))


def sharing_plan(plan: Shareable, fewest: int, most: int, *, asked: str) -> SharingPlan:
    """The sharing among the fewest and the most processes.

    Raises ConfigurationError where the training of `plan` can't be shared out so, which the
    options `asked` for.
    """
    check_sharing(plan, most, asked=asked)
    return SharingPlan(shards_in(plan), (fewest, most))


def _range(fewest: int, most: int) -> str:
    return f"{most}" if fewest == most else f"{fewest} to {most}"


@dataclass(frozen=True)
class CurriculumPlan:
    """A curriculum's lessons, and what may keep them from being passed."""

    curriculum: LoadedCurriculum
    longest_episode: int | None  # environment steps; None: not known
    lessons: tuple[PlannedLesson, ...]
    warnings: tuple[str, ...]
    cost: UpdateCost
    sharing: SharingPlan | None = None  # among several processes
    speed: float | None = None  # steps a second on this machine, where that was tried

    def as_json(self) -> dict[str, Any]:
        """The plan as one document, with the whole configuration in `resolved`."""
        config = self.curriculum.config
        parts = [part._asdict() for part in self.network]
        return {
            "schema": 1,
            "name": config.name,
            "seed": config.seed,
            "total_steps": config.train.total_steps,
            "longest_episode_steps": self.longest_episode,
            "update_multiply_adds": self.cost.multiply_adds,
            "epoch_samples": self.epoch_samples,
            "lessons": [_lesson_json(planned) for planned in self.lessons],
            "scaling": self.scaling,
            **({"network": parts, "engine": self.engine} if parts else {}),
            **({} if self.sharing is None else {"sharing": asdict(self.sharing)}),
            **({} if self.speed is None else {"steps_per_second": self.speed}),
            "warnings": list(self.warnings),
            "resolved": plain_settings(config),
        }

    @property
    def network(self) -> tuple[Part, ...]:
        """The parts of the network, where its sizes are known beforehand."""
        config = self.curriculum.config
        return network_summary(config.train, spec_of(config.env))

    @property
    def rollout_steps(self) -> int:
        """Steps of all environments between two updates; the last ones are taken to their end."""
        config = self.curriculum.config
        return seats_in(config.env) * algorithm_of(config.train).rollout_steps(config.train)

    @property
    def epoch_samples(self) -> int:
        """Samples that an epoch passes over, once as many rollouts are there as are kept."""
        return self.rollout_steps * self.curriculum.config.train.samples.keep

    @property
    def engine(self) -> str:
        """Which engine computes."""
        return engine_summary(self.curriculum.config.train)

    @property
    def scaling(self) -> str:
        """How observations and rewards are scaled, and whether that is only a default."""
        train, left_open = self.curriculum.config.train, self.curriculum.left_open
        actors = "" if train.actors is None else " with actors"
        world = self.curriculum.config.env.world
        default = f" (the default of {train.algo}{actors} in world {world})"
        running = train.reward_scale == "running"
        rewards = "over their running deviation" if running else f"times {train.reward_scale:g}"
        told = f"rewards {rewards}{default if ('train', 'reward_scale') in left_open else ''}"
        scaling = getattr(train.network, "scaling", None)
        if scaling not in SCALINGS:
            return told
        is_default = ("train", "network", "scaling") in left_open
        return f"observations {SCALINGS[scaling]}{default if is_default else ''}, {told}"


def plan_curriculum(
    curriculum: LoadedCurriculum,
    forecaster: Forecaster | None = None,
    *,
    sharing: SharingPlan | None = None,
) -> CurriculumPlan:
    """The plan of `curriculum`, shared out to several processes by `sharing`."""
    config = curriculum.config
    forecaster = forecaster or Forecaster()
    targets = type_of(config.env).targets(config.learned_env)
    lessons = tuple(_planned(lesson, targets, forecaster) for lesson in config.lessons)
    spec = spec_of(config.env)
    longest = spec.max_steps
    warnings = tuple(_warnings(config, lessons, longest))
    cost = update_cost(config.train, config.learned_env)._replace(pictures=bool(spec.pictures))
    return CurriculumPlan(curriculum, longest, lessons, warnings, cost, sharing)


def tried_speed(config: CurriculumFile, seconds: float = 5.0) -> float | None:
    """Steps a second of a training by `config` on this machine, tried for `seconds` in memory.

    They begin after the first update, which compiles, and once an algorithm with a replay buffer
    learns. None where that takes ten times as long, or where the training ended first.
    """
    from aimbot_lab.tracking.tracker import MemoryTracker
    from aimbot_lab.training.training import Training

    with closing(Training(config.training_plan)) as training:
        pace = _Pace(getattr(training.model, "learning_starts", 0), seconds)
        training.learn(MemoryTracker(), pace, pace.is_known)
    return pace.speed


class _Pace(SilentObserver):
    """Between which times and steps a training learned; it tells so before rollouts."""

    def __init__(self, learns_after: int, seconds: float) -> None:
        self._learns_after, self._seconds = learns_after, seconds
        self._ends = time.monotonic() + 10 * seconds
        self._marks: list[tuple[float, int]] = []

    def glance(self, snapshot: TrainingSnapshot) -> None:
        if snapshot.step > self._learns_after:
            self._marks.append((time.monotonic(), snapshot.step))

    progress = glance

    def is_known(self) -> bool:
        """Whether the speed is known, or takes too long to become so."""
        lasted = self._marks[-1][0] - self._marks[0][0] if self._marks else 0.0
        return lasted >= self._seconds or time.monotonic() >= self._ends

    @property
    def speed(self) -> float | None:
        """Steps a second between the first mark and the last."""
        if len(self._marks) < 2:
            return None
        (begun, first), (ended, last) = self._marks[0], self._marks[-1]
        return (last - first) / (ended - begun)


def _planned(lesson: Lesson, targets: Mapping[str, int], forecaster: Forecaster) -> PlannedLesson:
    shares = cell_shares(lesson_scenario(lesson, targets))
    cells = tuple(PlannedCell(*cell, share) for cell, share in shares.items())
    criteria = lesson.completion_criteria
    if criteria is None or not (criteria.by_evidence and criteria.of_win_rate):
        return PlannedLesson(lesson, cells, (), None)

    def expect(win_rate: float) -> Expectation:
        return forecaster.expect(criteria, [*shares.values()], win_rate=win_rate)

    doubtful = expect(halfway(criteria.threshold))
    expected = tuple(expect(rate) for rate in assumed_win_rates(criteria.threshold))
    return PlannedLesson(lesson, cells, expected, doubtful)


def _lesson_json(planned: PlannedLesson) -> dict[str, Any]:
    lesson = planned.lesson
    criteria = lesson.completion_criteria
    return {
        "name": lesson.name,
        "cells": [asdict(cell) for cell in planned.cells],
        "parameters": asdict(lesson)["parameters"],
        "completion_criteria": None if criteria is None else asdict(criteria),
        "expected": [asdict(one) for one in planned.expected],
    }


def _warnings(
    config: CurriculumFile, lessons: Sequence[PlannedLesson], longest: int | None
) -> Iterator[str]:
    for number, planned in enumerate(lessons):
        for what in _lesson_warnings(planned):
            yield f"lessons.{number} {planned.lesson.name!r}: {what}"
    yield from _progress_warnings(config.lessons)
    yield from _budget_warnings(config, lessons, longest)
    if config.train.batch_size > LARGE_BATCH:
        yield (
            f"train.batch_size {config.train.batch_size:,}: minibatches of more than "
            f"{LARGE_BATCH:,} samples make few updates, so that an agent takes many times the "
            "steps to learn"
        )
    yield from part_remarks(config.train)
    yield from action_remarks(config.train, spec_of(config.env))
    yield from plan_remarks(config.train, config.env)


def _progress_warnings(lessons: Sequence[Lesson]) -> Iterator[str]:
    reached = -1.0
    for number, lesson in enumerate(lessons):
        criteria = lesson.completion_criteria
        if criteria is None or criteria.measured.of_episodes:
            continue
        if criteria.threshold <= reached:
            yield (
                f"lessons.{number} {lesson.name!r}: progress exceeds {criteria.threshold:g} before "
                f"it begins, since an earlier lesson waits for {reached:g}"
            )
        reached = max(reached, criteria.threshold)


def _lesson_warnings(planned: PlannedLesson) -> Iterator[str]:
    criteria, doubtful = planned.lesson.completion_criteria, planned.doubtful
    if criteria is None or doubtful is None:
        return
    if doubtful.episodes is None:
        perfect = planned.expected[-1].episodes
        least = "more than can be simulated" if perfect is None else f"{perfect:,}"
        yield (
            f"threshold {criteria.threshold:g} can hardly be met: at a true win rate of "
            f"{doubtful.win_rate:g} the test takes too many episodes to simulate, and without "
            f"a single loss {least}"
        )
    if criteria.every_cell:
        for cell in planned.cells:
            if cell.share < RARE:
                name = Cell(cell.target, cell.difficulty).shown
                yield (
                    f"{name} must pass by itself and gets {100 * cell.share:.2f} % of the "
                    "episodes: "
                    "raise its weight or leave it out"
                )


def _budget_warnings(
    config: CurriculumFile, lessons: Sequence[PlannedLesson], longest: int | None
) -> Iterator[str]:
    train = config.train
    rollout = seats_in(config.learned_env) * algorithm_of(train).rollout_steps(train)
    if train.total_steps < rollout:
        yield (
            f"train.total_steps {train.total_steps:,} is less than one rollout, "
            f"{rollout_product(config.learned_env)} = {rollout:,}, which is always finished"
        )
    least = sum(_episodes(one, one.expected[-1:]) for one in lessons)
    likely = sum(_episodes(one, [one.doubtful] if one.doubtful else []) for one in lessons)
    if least > train.total_steps:
        yield (
            f"train.total_steps {train.total_steps:,} cannot be enough: an agent that never loses "
            f"needs {least:,} episodes, and an episode takes a step at least"
        )
    elif longest is not None and likely * longest > train.total_steps:
        yield (
            f"train.total_steps {train.total_steps:,} may not be enough: the lessons take some "
            f"{likely:,} episodes (a test: at a rate halfway between threshold and 1), up to "
            f"{longest:,} steps each"
        )


def _episodes(planned: PlannedLesson, expected: Sequence[Expectation]) -> int:
    """What the lesson takes as far as that is known: its least length, if nothing else."""
    criteria = planned.lesson.completion_criteria
    shortest = 0 if criteria is None else criteria.min_lesson_length
    return max([shortest, *(one.episodes or 0 for one in expected)])
