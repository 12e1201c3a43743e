"""Parameters of worlds with kernels, as settings name them and arrays hold them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from math import ceil, floor, inf
from typing import Any, assert_never, get_args, get_type_hints

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Interval, Le, Lt
from pydantic import TypeAdapter

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import (
    GAUSSIAN,
    RANGES,
    UNIFORM,
    Gaussian,
    MultiRangeUniform,
    ParameterValue,
    Uniform,
    as_parameter,
    extremes,
    intervals_of,
)
from aimbot_lab.foundation.world import Scenario, StepBuffers, step_buffers
from aimbot_lab.foundation.world_type import Bounds, StepParts, WorldType

OPEN_BOUND = 1e-6  # distance that a sampled value keeps from a bound it must not reach

Fault = Callable[[str, ParameterValue], str | None]
"""What is wrong with the value of a parameter."""


def setting_of(settings: Any, name: str) -> float:
    """The number that `settings` have under `name`, such as `rays.range`."""
    for part in name.split("."):
        settings = getattr(settings, part)
    return float(settings)


def type_of(settings: type[Any], name: str) -> Any:
    """The annotated type of the setting `name` of the class `settings`."""
    kind: Any = settings
    for part in name.split("."):
        kind = get_type_hints(kind, include_extras=True)[part]
    return kind


def bounds_of(settings: type[Any], name: str) -> Bounds:
    """The values that the setting `name` of the class `settings` takes, as it declares them."""
    base, *marks = get_args(type_of(settings, name))
    low, high = -inf, inf
    for mark in marks:
        for part in mark if isinstance(mark, Interval) else (mark,):
            if isinstance(part, Ge):
                low = float(part.ge)  # type: ignore[arg-type]
            elif isinstance(part, Gt):
                low = float(part.gt) + OPEN_BOUND  # type: ignore[arg-type]
            elif isinstance(part, Le):
                high = float(part.le)  # type: ignore[arg-type]
            elif isinstance(part, Lt):
                high = float(part.lt) - OPEN_BOUND  # type: ignore[arg-type]
    if base is bool:
        return Bounds(0.0, 1.0, whole=True)
    return Bounds(low, high, whole=base is int)


def is_unbounded(value: ParameterValue) -> bool:
    """Whether `value` has no ends: what such a Gaussian draws beyond a bound is moved to it."""
    low, high = extremes(value)
    return isinstance(value, Gaussian) and low < high


def value_fault(
    value: ParameterValue, bounds: Bounds, *, setting: str = "", declared: float = inf
) -> str | None:
    """What is wrong with a parameter that is to be `value`; None: nothing.

    `declared` is what env.`setting` says where that bounds the observation.
    """
    try:
        value = as_parameter(value)
    except TypeError as error:
        return str(error)
    if is_unbounded(value):
        return None
    if bounds.whole:
        if isinstance(value, float) and not value.is_integer():
            return f"must be a whole number (got {value:g})"
        for low, high in intervals_of(value):
            if ceil(low) > floor(high):
                return f"must be drawn where there are whole numbers (got {shown(low, high)})"
    low, high = extremes(value)
    if high > declared:
        return f"must not exceed env.{setting}, which bounds the observation ({declared:g})"
    if not bounds.low <= low <= high <= bounds.high:
        return f"must {bounds} (got {shown(low, high)})"
    return None


def shown(low: float, high: float) -> str:
    """A range as messages name it."""
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def scenario_values(
    given: Mapping[str, ParameterValue], usual: Mapping[str, float], *, fault: Fault
) -> dict[str, ParameterValue]:
    """What every parameter is drawn from: as a scenario has `given` it, else as `usual`.

    Raises ConfigurationError for an unknown parameter and a value that one does not take.
    """
    for name, value in given.items():
        if name not in usual:
            known = ", ".join(usual)
            raise ConfigurationError(f"scenario: no parameter {name!r}; there are {known}")
        what = fault(name, value)
        if what is not None:
            raise ConfigurationError(f"scenario: {name} {what}")
    return {**usual, **{name: as_parameter(value) for name, value in given.items()}}


def sampler_fields(
    values: Mapping[str, ParameterValue], bounds: Mapping[str, Bounds], names: Sequence[str]
) -> dict[str, np.ndarray]:
    """Fields of a scenario's tables that say what each of the P `names` is drawn from.

    Those of `sampler_arrays`, `bounds` [P, 2] and `whole` [P].
    """
    return {
        **sampler_arrays([values[name] for name in names]),
        "bounds": np.array([(bounds[name].low, bounds[name].high) for name in names], np.float64),
        "whole": np.array([bounds[name].whole for name in names]),
    }


def target_number(name: str, numbers: Mapping[str, int]) -> int:
    """The number of the target `name`. Raises ConfigurationError where there is no such target."""
    if name not in numbers:
        raise ConfigurationError(f"scenario: no target {name!r}; there are {', '.join(numbers)}")
    return numbers[name]


def target_weights(weights: Mapping[str, float], numbers: Mapping[str, int], count: int) -> Any:
    """`weights` of targets as an array [count] by their numbers. Raises ConfigurationError."""
    found = np.zeros(count)
    found[[target_number(name, numbers) for name in weights]] = proportions(
        weights.values(), "targets"
    )
    return found


def level_weights(target: str, weights: Sequence[float], count: int) -> Any:
    """`weights` of the `count` difficulties of `target`. Raises ConfigurationError."""
    if count == 0:
        raise ConfigurationError(f"scenario: {target} has no difficulties: leave it out")
    found = proportions(weights, target)
    if len(found) != count:
        raise ConfigurationError(
            f"scenario: {target} has {count} difficulties (got {len(found)} weights)"
        )
    return found


class KernelType(WorldType):
    """What such kinds of worlds have in common."""

    benched = True

    def parameter_texts(self) -> Mapping[str, str]:
        """What the setting of each parameter's name says about itself."""
        return {name: setting_text(self.settings, name) for name in self.parameters(None) or ()}

    def reward_bound(self, settings: Any) -> float:
        """The largest of the reward weights."""
        return float(max(map(abs, asdict(settings.rewards).values())))

    def warm_up(self, settings: Any, scenario: Scenario) -> None:
        """Take a step of a single row, which compiles the kernels or reads them from the cache."""
        world = self.make(replace(settings, num_envs=1))
        world.set_scenario(scenario)
        buffers = step_buffers(world)
        world.reset(0, buffers.observations)
        shape = len(buffers.rewards), len(world.spec.action_names)
        world.step(np.zeros(shape, np.float32), buffers)

    def spread_episodes(
        self, world: Any, scenario: Scenario, *, seed: int, play: Callable[[int], object]
    ) -> None:
        """Rows in full play, as the world spreads them over the time of their episodes."""
        world.spread_episodes(scenario, seed=seed, play=play)

    def step_parts(self, world: Any, scenario: Scenario, buffers: StepBuffers) -> StepParts:
        """The kernels of a step, each on all rows of `world`, which draws from `scenario`."""
        del scenario
        frames = world.frames  # of one with pictures, which kernels write elsewhere
        parts: StepParts = world.step_parts(buffers if frames is None else frames.buffers)
        return parts


def setting_text(settings: type[Any], name: str) -> str:
    """What the class `settings` says about its setting `name`, such as `rays.range`."""
    section, _, key = name.rpartition(".")
    kind = type_of(settings, section) if section else settings
    return str(TypeAdapter(kind).json_schema()["properties"][key]["description"])


Floats = npt.NDArray[np.float64]


def sampler_arrays(values: Sequence[ParameterValue]) -> dict[str, np.ndarray]:
    """What draws each of P parameters, by the names that kernels know.

    `sampler` [P] kinds, `sampler_values` [P, 2] (constant; low and high; mean and standard
    deviation), `sampler_ranges` [P, I, 2] low and high of each interval, `sampler_range_count` [P],
    `sampler_seed` [P] seed of its own, `sampler_seeded` [P] whether it has one.
    """
    count = len(values)
    ranges = [
        value.sampler_parameters.intervals
        for value in values
        if isinstance(value, MultiRangeUniform)
    ]
    arrays = {
        "sampler": np.zeros(count, np.int64),
        "sampler_values": np.zeros((count, 2)),
        "sampler_ranges": np.zeros((count, max(map(len, ranges), default=1), 2)),
        "sampler_range_count": np.zeros(count, np.int64),
        "sampler_seed": np.zeros(count, np.uint64),
        "sampler_seeded": np.zeros(count, np.bool_),
    }
    for index, value in enumerate(values):
        _fill(arrays, index, value)
    return arrays


def _fill(arrays: dict[str, np.ndarray], index: int, value: ParameterValue) -> None:
    if isinstance(value, int | float):
        arrays["sampler_values"][index, 0] = value
        return
    if isinstance(value, Uniform):
        given = value.sampler_parameters
        arrays["sampler"][index] = UNIFORM
        arrays["sampler_values"][index] = given.min_value, given.max_value
    elif isinstance(value, Gaussian):
        normal = value.sampler_parameters
        arrays["sampler"][index] = GAUSSIAN
        arrays["sampler_values"][index] = normal.mean, normal.st_dev
    elif isinstance(value, MultiRangeUniform):
        intervals = value.sampler_parameters.intervals
        arrays["sampler"][index] = RANGES
        arrays["sampler_ranges"][index, : len(intervals)] = intervals
        arrays["sampler_range_count"][index] = len(intervals)
    else:
        assert_never(value)
    seed = value.sampler_parameters.seed
    arrays["sampler_seeded"][index] = seed is not None
    arrays["sampler_seed"][index] = seed or 0


def proportions(weights: Iterable[object], what: str) -> Floats:
    """`weights` scaled so that their sum is finite; by a power of two, which keeps every bit."""
    given = list(weights)
    try:
        found: Floats = np.array([as_parameter(weight) for weight in given], np.float64)
    except TypeError as error:
        raise ConfigurationError(
            f"scenario: {what}: weights must be numbers (got {given!r:.80})"
        ) from error
    if not np.isfinite(found).all() or (found < 0).any() or not (found > 0).any():
        raise ConfigurationError(
            f"scenario: {what}: weights must be finite, not negative and not all 0 "
            f"(got {given!r:.80})"
        )
    scaled: Floats = np.ldexp(found, -np.frexp(found.max())[1])
    return scaled
