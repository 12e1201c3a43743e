"""A scenario as arrays for the kernels."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.samplers import (
    Gaussian,
    MultiRangeUniform,
    ParameterValue,
    Uniform,
    as_parameter,
)
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.gorge.core import samplers as kinds
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import SamplerTables, ScenarioTables
from aimbot_lab.worlds.gorge.spec import DIFFICULTIES, TARGETS

Fault = Callable[[str, ParameterValue], str | None]  # of a parameter and its value


def scenario_tables(scenario: Scenario, *, number: int) -> ScenarioTables:
    """The targets and difficulties of the next episodes, as scenario `number`.

    Raises ConfigurationError for an unknown target, and weights that leave nothing to draw.
    """
    targets = np.zeros(core.TARGET_COUNT)
    codes = [_code(name) for name in scenario.targets]
    targets[codes] = _proportions(scenario.targets.values(), "targets")
    difficulty = np.ones((core.TARGET_COUNT, core.DIFFICULTY_COUNT))
    for name, weights in scenario.difficulty.items():
        code, count = _code(name), DIFFICULTIES[name]
        if count == 0:
            raise ConfigurationError(f"scenario: {name} has no difficulties: leave it out")
        if len(weights) != count:
            what = f"{name} has {count} difficulties (got {len(weights)} weights)"
            raise ConfigurationError(f"scenario: {what}")
        difficulty[code] = _proportions(weights, name)
    return ScenarioTables(np.array([number]), targets, difficulty)


def sampler_tables(
    given: Mapping[str, ParameterValue],
    usual: Mapping[str, float],
    bounds: Mapping[str, Bounds],
    *,
    fault: Fault,
) -> SamplerTables:
    """What draws each parameter: as `given`, else as `usual`.

    Raises ConfigurationError for an unknown parameter and a value that one does not take.
    """
    for name, value in given.items():
        if name not in usual:
            known = ", ".join(usual)
            raise ConfigurationError(f"scenario: no parameter {name!r}; there are {known}")
        what = fault(name, value)
        if what is not None:
            raise ConfigurationError(f"scenario: {name} {what}")
    values = {**usual, **{name: as_parameter(value) for name, value in given.items()}}
    tables = _new_tables(values, bounds)
    for index, name in enumerate(core.PARAMETERS):
        _fill(tables, index, values[name])
    return tables


def _new_tables(
    values: Mapping[str, ParameterValue], bounds: Mapping[str, Bounds]
) -> SamplerTables:
    count = len(core.PARAMETERS)
    intervals = [
        len(value.sampler_parameters.intervals)
        for value in values.values()
        if isinstance(value, MultiRangeUniform)
    ]
    limits = [bounds[name] for name in core.PARAMETERS]
    return SamplerTables(
        kind=np.zeros(count, np.int64),
        values=np.zeros((count, 2)),
        ranges=np.zeros((count, max(intervals, default=1), 2)),
        range_count=np.zeros(count, np.int64),
        seed=np.zeros(count, np.uint64),
        seeded=np.zeros(count, np.bool_),
        bounds=np.array([(one.low, one.high) for one in limits], np.float64),
        whole=np.array([one.whole for one in limits]),
    )


def _fill(tables: SamplerTables, index: int, value: ParameterValue) -> None:
    if isinstance(value, int | float):
        tables.values[index, 0] = value
        return
    if isinstance(value, Uniform):
        even = value.sampler_parameters
        tables.kind[index] = kinds.UNIFORM
        tables.values[index] = even.min_value, even.max_value
    elif isinstance(value, Gaussian):
        normal = value.sampler_parameters
        tables.kind[index] = kinds.GAUSSIAN
        tables.values[index] = normal.mean, normal.st_dev
    else:
        intervals = value.sampler_parameters.intervals
        tables.kind[index] = kinds.RANGES
        tables.ranges[index, : len(intervals)] = intervals
        tables.range_count[index] = len(intervals)
    seed = value.sampler_parameters.seed
    tables.seeded[index] = seed is not None
    tables.seed[index] = seed or 0


def _proportions(weights: Iterable[object], what: str) -> core.Floats:
    """`weights` scaled so that their sum is finite; by a power of two, which keeps every bit."""
    given = list(weights)
    try:
        found: core.Floats = np.array([as_parameter(weight) for weight in given], np.float64)
    except TypeError as error:
        raise ConfigurationError(
            f"scenario: {what}: weights must be numbers (got {given!r:.80})"
        ) from error
    if not np.isfinite(found).all() or (found < 0).any() or not (found > 0).any():
        raise ConfigurationError(
            f"scenario: {what}: weights must be finite, not negative and not all 0 "
            f"(got {given!r:.80})"
        )
    scaled: core.Floats = np.ldexp(found, -np.frexp(found.max())[1])
    return scaled


def _code(name: str) -> int:
    if name not in TARGETS:
        raise ConfigurationError(f"scenario: no target {name!r}; there are {', '.join(TARGETS)}")
    return TARGETS[name]
