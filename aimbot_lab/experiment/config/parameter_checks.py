"""What is wrong with the environment parameters of a curriculum, beside their form."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.diagnostics import Diagnostic
from aimbot_lab.experiment.config.environment_parameters import ParameterCurriculum
from aimbot_lab.experiment.config.key_path import KeyPath, starts_with
from aimbot_lab.experiment.config.keys import advice
from aimbot_lab.experiment.config.parameter_lessons import (
    SECTION,
    Parameters,
    course_diagnostics,
    with_parameters,
)
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.world_type import WorldSettings, WorldType


def lesson_parameter_diagnostics(
    given: Mapping[str, ParameterValue],
    env: WorldSettings | None,
    path: KeyPath,
    *,
    world: WorldType | None,
) -> Iterator[Diagnostic]:
    """What is wrong with each parameter, or, where nothing is, with all of them together."""
    faults = [
        fault
        for name, value in given.items()
        if (fault := _diagnostic(name, (*path, name), value, env=env, world=world))
    ]
    yield from faults
    crowded = None
    if not faults and env is not None and world is not None:
        crowded = world.together_fault(given, env)
    if crowded is not None:
        yield Diagnostic(path, crowded)


def environment_diagnostics(
    lessons: Sequence[Lesson | None] | None,
    parameters: Parameters | None,
    env: WorldSettings | None,
    *,
    world: WorldType | None,
) -> Iterator[Diagnostic]:
    """What is wrong with `environment_parameters`, by themselves and with the lessons.

    A part that is None is wrong by itself, and nothing is held against it.
    """
    if not parameters:
        return
    faults = [
        fault
        for value in _values(parameters)
        if (fault := _diagnostic(*value, env=env, world=world))
    ]
    if lessons is not None:
        faults += course_diagnostics(lessons, parameters)
    yield from dict.fromkeys(faults)
    known = [lesson for lesson in lessons or () if lesson is not None]
    if faults or env is None or world is None:
        return
    if lessons is None or len(known) < len(lessons):
        return
    for lesson in with_parameters(known, parameters):
        crowded = world.together_fault(lesson.parameters, env)
        if crowded is not None:
            yield Diagnostic((SECTION,), crowded)
            return


def with_reward_terms(faults: Sequence[Diagnostic], data: Any) -> list[Diagnostic]:
    """`faults` with one in the place of all about a `rewards` that nests its terms.

    In lessons the terms are keys of their own, such as rewards.win.
    """
    kept = list(faults)
    lessons = data.get("lessons") if isinstance(data, dict) else None
    for number, lesson in enumerate(lessons if isinstance(lessons, list) else []):
        parameters = lesson.get("parameters") if isinstance(lesson, dict) else None
        terms = parameters.get("rewards") if isinstance(parameters, dict) else None
        if not isinstance(terms, dict) or "sampler_type" in terms:
            continue
        path: KeyPath = ("lessons", number, "parameters", "rewards")
        keys = ", ".join(f"rewards.{term}" for term in [*terms][:8]) or "rewards.win"
        kept = [fault for fault in kept if not starts_with(fault.path, path)]
        kept.append(
            Diagnostic(path, f"each term is a parameter of its own: {keys}", about_key=True)
        )
    return kept


def _values(parameters: Parameters) -> Iterator[tuple[str, KeyPath, ParameterValue]]:
    """Every value that a parameter takes: name, place and value."""
    for name, value in parameters.items():
        path: KeyPath = (SECTION, name)
        if not isinstance(value, ParameterCurriculum):
            yield name, path, value
            continue
        for number, lesson in enumerate(value.curriculum):
            yield name, (*path, "curriculum", number, "value"), lesson.value


def _diagnostic(
    name: str,
    path: KeyPath,
    value: ParameterValue,
    *,
    env: WorldSettings | None,
    world: WorldType | None,
) -> Diagnostic | None:
    if world is None:
        return None
    known = world.parameters(env)
    if known is not None and name not in known:
        key = path[: path.index(name) + 1]
        what = f"unknown environment parameter ({advice(name, known)})"
        return Diagnostic(key, what, about_key=True)
    fault = world.parameter_fault(name, value, env)
    return None if fault is None else Diagnostic(path, fault)
