"""Cells of a lesson: each target at each difficulty that its mix can draw."""

from collections.abc import Mapping

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.world import Scenario


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
