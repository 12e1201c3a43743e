"""Lessons as a curriculum writes them: what is played, what ends it, what is watched on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen
from pydantic import AfterValidator, Discriminator, Tag

from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.samplers import Gaussian, MultiRangeUniform, Sampler, Uniform
from aimbot_lab.foundation.settings import STRICT, Float, Ge, Gt, Le, Lt, dataclass
from aimbot_lab.foundation.world import Scenario

__all__ = [
    "CompletionCriteria",
    "ForgettingSettings",
    "Lesson",
    "Name",
    "chain_faults",
    "checked_chain",
]

Key = str | int
Weight = Annotated[Float, Ge(0), Le(1e6)]


def _some_weight(weights: tuple[float, ...]) -> tuple[float, ...]:
    if not sum(weights) > 0:
        raise ValueError("weights must not sum to 0")
    return weights


def _some_target(targets: Mapping[str, float]) -> Mapping[str, float]:
    if targets:
        _some_weight(tuple(targets.values()))
    return targets


def kind_of_parameter(value: object) -> str | None:
    """Which member of `Parameter` a value wants to be."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    is_sampler = isinstance(value, Mapping | Uniform | Gaussian | MultiRangeUniform)
    return "sampler" if is_sampler else None


TargetWeights = Annotated[Mapping[str, Weight], AfterValidator(_some_target)]
DifficultyWeights = Annotated[tuple[Weight, ...], AfterValidator(_some_weight)]
Name = Annotated[str, MinLen(1), MaxLen(100)]
Parameter = Annotated[
    Annotated[Float, Tag("number")] | Annotated[Sampler, Tag("sampler")],
    Discriminator(
        kind_of_parameter,
        custom_error_type="parameter_type",
        custom_error_message="must be a number or a sampler",
    ),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ForgettingSettings:
    """How what earlier lessons passed is watched on, and what happens when it is lost.

    Each cell (a target at a difficulty) of a lesson that was passed by its win rate is watched in
    all later lessons with the same parameters.
    """

    on_forgetting: Literal["ignore", "rehearse", "demote"] = "ignore"
    """What a significant fall leads to, besides the report: nothing; more episodes of that cell
    until it is back; or back to the lesson that it belongs to (once, then it is rehearsed)."""
    margin: Annotated[Float, Gt(0), Lt(1)] = 0.1
    """How far a win rate may fall below what was passed."""
    alpha: Annotated[Float, Gt(0), Le(0.5)] = 0.05
    """Chance, at most, that in a whole run a fall is reported that was none."""
    watch_share: Annotated[Float, Ge(0), Le(0.5)] = 0.02
    """Share of the episodes that is drawn from the cells that the lesson's mix has no more."""
    rehearsal_share: Annotated[Float, Gt(0), Le(0.5)] = 0.25
    """Share of the episodes that is drawn from the cells that are rehearsed."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Lesson:
    """One step of a curriculum: a mix of targets and difficulties, and how it ends."""

    name: Name
    """What the lesson is called in tables and charts."""
    targets: TargetWeights = field(default_factory=dict)
    """Mix of targets: a weight for each. A world that has but one target needs none."""
    difficulty: Mapping[str, DifficultyWeights] = field(default_factory=dict)
    """Mix of difficulties of each target, easiest first; equal weights where it is left out."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    """Environment parameters that differ from `env` in this lesson: each a number, or a sampler
    that draws it anew for every episode."""
    completion_criteria: CompletionCriteria | None = None
    """What ends the lesson; the last one may go without and then lasts until training ends."""


def chain_faults(lessons: Sequence[Lesson | None]) -> Iterator[tuple[tuple[Key, ...], str]]:
    """What is wrong with the lessons together: where (lesson, then key), and what.

    A lesson that is None is known to be wrong in itself and passed over.
    """
    if not lessons:
        yield (), "must hold at least one lesson"
    seen: dict[str, int] = {}
    for number, lesson in enumerate(lessons):
        if lesson is None:
            continue
        first = seen.setdefault(lesson.name, number)
        if first != number:
            yield (number, "name"), f"must differ from the name of lessons.{first}"
        if lesson.completion_criteria is None and number < len(lessons) - 1:
            yield (number, "completion_criteria"), "is missing; only the last lesson may do without"
        against = lesson.completion_criteria and lesson.completion_criteria.against
        if against and not lesson.targets.get(against):
            what = f"must be among the lesson's targets ({', '.join(lesson.targets)})"
            yield (number, "completion_criteria", "against"), what
        for target in lesson.difficulty:
            if target not in lesson.targets:
                known = ", ".join(lesson.targets)
                yield (
                    (number, "difficulty", target),
                    f"must be among the lesson's targets ({known})",
                )


def checked_chain(lessons: Sequence[Lesson], total_steps: int | None) -> tuple[Lesson, ...]:
    """`lessons`. Raises ConfigurationError where they make no chain.

    Nor do they where one is measured by progress and `total_steps` is missing.
    """
    faults = [
        ": ".join((".".join(map(str, ("lessons", *where))), what))
        for where, what in chain_faults(lessons)
    ]
    criteria = [one.completion_criteria for one in lessons if one.completion_criteria]
    if not all(one.measured.of_episodes for one in criteria) and not total_steps:
        faults.append("total_steps: must be given, because a lesson is measured by progress")
    if faults:
        raise ConfigurationError(*faults)
    return tuple(lessons)


def lesson_scenario(lesson: Lesson, difficulties: Mapping[str, int]) -> Scenario:
    """What the lesson's episodes are drawn from, every weight spelled out.

    `difficulties` is the world's number of difficulties of each target (0: has none). Targets that
    it lacks are left out, as a training alone has past selves; all of its own, where none is left.
    """
    given = {name: weight for name, weight in lesson.targets.items() if name in difficulties}
    targets = given if any(given.values()) else dict.fromkeys(difficulties, 1.0)
    drawn = [target for target, weight in targets.items() if weight > 0]
    return Scenario(
        targets={target: targets[target] for target in drawn},
        difficulty={
            target: lesson.difficulty.get(target, (1.0,) * difficulties[target])
            for target in drawn
            if difficulties[target]
        },
        parameters=dict(lesson.parameters),
    )


def lesson_cells(lesson: Lesson, difficulties: Mapping[str, int]) -> tuple[Cell, ...]:
    """The cells with a weight above 0, in the order of the lesson's mix."""
    return scenario_cells(lesson_scenario(lesson, difficulties))


def scenario_cells(scenario: Scenario) -> tuple[Cell, ...]:
    """The cells that `scenario` draws, in the order of its mix."""
    return tuple(
        cell
        for target in scenario.targets
        for cell in _target_cells(target, scenario.difficulty.get(target))
    )


def _target_cells(target: str, weights: tuple[float, ...] | None) -> list[Cell]:
    if weights is None:
        return [Cell(target, 0)]
    return [Cell(target, level) for level, weight in enumerate(weights, start=1) if weight > 0]
