"""Parameters with lessons of their own, as the lessons of a curriculum.

In ML-Agents every parameter goes its own way through its lessons. Here there is one way. So
either one parameter has lessons, or all that have any end them by the same criteria, in which
case ML-Agents moves them on together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.diagnostics import Diagnostic
from aimbot_lab.experiment.config.environment_parameters import (
    EnvironmentParameter,
    ParameterCriteria,
    ParameterCurriculum,
    ParameterLesson,
)
from aimbot_lab.experiment.config.key_path import KeyPath
from aimbot_lab.foundation.samplers import ParameterValue

SECTION = "environment_parameters"

Parameters = Mapping[str, EnvironmentParameter]


def with_parameters(lessons: Sequence[Lesson], parameters: Parameters) -> tuple[Lesson, ...]:
    """`lessons` with every value that `parameters` give; a lesson's own parameters go first.

    Where a parameter has lessons, the one lesson in `lessons` is what each of them plays, and the
    last keeps its criterion. Valid where `course_diagnostics` finds nothing.
    """
    fixed = {
        name: value
        for name, value in parameters.items()
        if not isinstance(value, ParameterCurriculum)
    }
    courses = _courses(parameters)
    if not courses:
        return tuple(_with(lesson, fixed) for lesson in lessons)
    return tuple(_steps(lessons[0], fixed, courses))


def course_diagnostics(
    lessons: Sequence[Lesson | None], parameters: Parameters
) -> Iterator[Diagnostic]:
    """Why the lessons of `parameters` make no chain on the mix of `lessons`.

    A lesson that is None is known to be invalid.
    """
    courses = _courses(parameters)
    if not courses:
        return
    for name, course in courses.items():
        if any(lesson is not None and name in lesson.parameters for lesson in lessons):
            yield Diagnostic(
                (SECTION, name), "has lessons of its own, and a lesson sets it as well"
            )
        for number, lesson in enumerate(course[:-1]):
            if lesson.completion_criteria is None:
                path: KeyPath = (SECTION, name, "curriculum", number, "completion_criteria")
                yield Diagnostic(path, "is missing; only the last lesson may do without")
    if len(lessons) != 1:
        what = "has lessons of its own, which all play the mix of the one lesson in `lessons`"
        yield Diagnostic((SECTION, next(iter(courses))), f"{what} (got {len(lessons)})")
    leader, *others = courses
    for name in others:
        if not _move_together(courses[leader], courses[name]):
            yield Diagnostic(
                (SECTION, name),
                f"has lessons that do not end together with those of {leader}: give both the same "
                "criteria, or write the lessons that you want as `lessons`",
            )


def _courses(parameters: Parameters) -> dict[str, tuple[ParameterLesson, ...]]:
    return {
        name: value.curriculum
        for name, value in parameters.items()
        if isinstance(value, ParameterCurriculum)
    }


def _move_together(one: Sequence[ParameterLesson], other: Sequence[ParameterLesson]) -> bool:
    return len(one) == len(other) and all(
        _criteria(a.completion_criteria) == _criteria(b.completion_criteria)
        for a, b in zip(one[:-1], other[:-1], strict=True)
    )


def _criteria(criteria: ParameterCriteria | None) -> CompletionCriteria | None:
    if criteria is None:
        return None
    return CompletionCriteria(
        measure=criteria.measure,
        rule="ml-agents",
        threshold=criteria.threshold,
        min_lesson_length=criteria.min_lesson_length,
        signal_smoothing=criteria.signal_smoothing,
    )


def _with(lesson: Lesson, parameters: Mapping[str, ParameterValue]) -> Lesson:
    return replace(lesson, parameters={**parameters, **lesson.parameters})


def _steps(
    played: Lesson,
    fixed: Mapping[str, ParameterValue],
    courses: Mapping[str, tuple[ParameterLesson, ...]],
) -> Iterator[Lesson]:
    taken: set[str] = set()
    rows = list(zip(*courses.values(), strict=True))
    for number, row in enumerate(rows, start=1):
        values = {name: lesson.value for name, lesson in zip(courses, row, strict=True)}
        name = _free_name(" / ".join(dict.fromkeys(lesson.name for lesson in row)), taken)
        criteria = (
            played.completion_criteria
            if number == len(rows)
            else _criteria(row[0].completion_criteria)
        )
        lesson = replace(played, name=name, completion_criteria=criteria)
        yield _with(lesson, {**fixed, **values})


def _free_name(wanted: str, taken: set[str]) -> str:
    """`wanted`, cut to what a name may be, and numbered where another lesson has it."""
    names = (wanted[:90] if n == 1 else f"{wanted[:90]} ({n})" for n in count(1))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name
