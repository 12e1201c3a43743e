"""What no section of a curriculum can check by itself."""

from collections.abc import Iterator, Mapping, Sequence
from math import isqrt
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from aimbot_lab.curriculum.settings import Lesson, chain_faults
from aimbot_lab.experiment.faults import Fault
from aimbot_lab.experiment.keys import advice
from aimbot_lab.experiment.paths import Path
from aimbot_lab.experiment.wording import describe
from aimbot_lab.sim.core.state import PARAMETERS
from aimbot_lab.sim.settings import ArenaSettings
from aimbot_lab.training.settings import TrainSettings

TRAINABLE_TARGETS: Mapping[str, int] = MappingProxyType({"goto": 5})
"""Targets that a lesson may mix, each with its number of difficulties."""

MOST_ROLLOUT_STEPS = 2**24


def cross_faults(
    lessons: Sequence[Lesson | None] | None,
    *,
    env: ArenaSettings | None,
    train: TrainSettings | None,
) -> Iterator[Fault]:
    """What is wrong between the sections; a part that is None is wrong by itself."""
    if lessons is not None:
        for path, what in chain_faults(lessons):
            yield Fault(("lessons", *path), what)
    for number, lesson in enumerate(lessons or ()):
        if lesson is not None:
            yield from _lesson_faults(lesson, ("lessons", number))
    if env is not None and train is not None:
        yield from _rollout_faults(env.num_envs, train)


def _lesson_faults(lesson: Lesson, path: Path) -> Iterator[Fault]:
    for target in lesson.targets:
        if target not in TRAINABLE_TARGETS:
            what = f"unknown target ({advice(target, TRAINABLE_TARGETS)})"
            yield Fault((*path, "targets", target), what, about_key=True)
    for target, weights in lesson.difficulty.items():
        count = TRAINABLE_TARGETS.get(target)
        if count is not None and len(weights) != count:
            what = f"must hold {count} weights, one for each difficulty (got {len(weights)})"
            yield Fault((*path, "difficulty", target), what)
    for name, value in lesson.parameters.items():
        yield from _parameter_faults(name, value, (*path, "parameters", name))


def _parameter_faults(name: str, value: float, path: Path) -> Iterator[Fault]:
    kinds = parameter_kinds()
    if name not in kinds:
        what = f"unknown environment parameter ({advice(name, kinds)})"
        yield Fault(path, what, about_key=True)
        return
    adapter = TypeAdapter(kinds[name], config=ConfigDict(allow_inf_nan=False))
    try:
        adapter.validate_python(int(value) if value.is_integer() else value)
    except ValidationError as error:
        yield Fault(path, describe(error.errors()[0]))


def parameter_kinds() -> dict[str, Any]:
    """The type, with its bounds, of every number of the arena that a scenario may set."""
    kinds = {name: _annotation(ArenaSettings, name) for name in PARAMETERS}
    return {name: kind for name, kind in kinds.items() if get_args(kind)[0] in (int, float)}


def _annotation(owner: Any, name: str) -> Any:
    first, _, rest = name.partition(".")
    kind = get_type_hints(owner, include_extras=True)[first]
    return _annotation(kind, rest) if rest else kind


def _rollout_faults(num_envs: int, train: TrainSettings) -> Iterator[Fault]:
    steps = num_envs * train.n_steps
    product = f"env.num_envs * train.n_steps = {steps}"
    if steps > MOST_ROLLOUT_STEPS:
        what = f"is too large: {product} must be at most {MOST_ROLLOUT_STEPS}"
        yield Fault(("train", "n_steps"), what)
    elif steps % train.batch_size:
        nearest = _nearest_divisor(steps, train.batch_size)
        got = f"got {train.batch_size}; nearest that does: {nearest}"
        yield Fault(("train", "batch_size"), f"must divide {product} ({got})")


def _nearest_divisor(number: int, wanted: int) -> int:
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    divisors = {*small, *(number // divisor for divisor in small)} - {1}
    return min(divisors, key=lambda divisor: (abs(divisor - wanted), divisor))
