"""A scenario as arrays for the kernels."""

from collections.abc import Iterable, Mapping, Sequence

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
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import PresetTables, ScenarioTables
from aimbot_lab.worlds.arena.parameters import (
    DECLARED,
    crowded_floor,
    parameter_bounds,
    parameter_fault,
    parameter_values,
)
from aimbot_lab.worlds.arena.settings import ArenaSettings

TARGETS = {"free": core.FREE, "goto": core.GOTO, "attack": core.ATTACK, "stay": core.STAY}
DIFFICULTIES = {"free": 0, "goto": 5, "attack": 5, "stay": 0}


def scenario_tables(
    scenario: Scenario, settings: ArenaSettings, presets: PresetTables, *, number: int
) -> ScenarioTables:
    """What the next episodes are drawn from, as scenario `number`.

    Raises ConfigurationError for an unknown target or parameter, a value that a parameter does
    not take, and weights that leave nothing to draw.
    """
    values = _parameters(scenario.parameters, settings)
    targets, difficulty = _weights(scenario, presets)
    bounds = _bounds(settings)
    return ScenarioTables(
        number=np.array([number]),
        target_weights=targets,
        difficulty_weights=difficulty,
        **_samplers(values),
        bounds=bounds,
        whole=np.array([parameter_bounds()[name].whole for name in core.PARAMETERS]),
    )


def _parameters(
    given: Mapping[str, ParameterValue], settings: ArenaSettings
) -> dict[str, ParameterValue]:
    usual = parameter_values(settings)
    for name, value in given.items():
        if name not in usual:
            raise ConfigurationError(
                f"scenario: no parameter {name!r}; there are {', '.join(usual)}"
            )
        fault = parameter_fault(name, value, settings)
        if fault is not None:
            raise ConfigurationError(f"scenario: {name} {fault}")
    values = {name: as_parameter(value) for name, value in given.items()}
    fault = crowded_floor(values, settings)
    if fault is not None:
        raise ConfigurationError(f"scenario: {fault}")
    return {**usual, **values}


def with_difficulty(
    tables: ScenarioTables, presets: PresetTables, target: str, weights: Sequence[float]
) -> ScenarioTables:
    """`tables` one number further, with these weights for the difficulties of `target`.

    Raises ConfigurationError for a target without difficulties and weights that leave nothing
    to draw.
    """
    if not DIFFICULTIES.get(target):
        known = ", ".join(name for name, levels in DIFFICULTIES.items() if levels)
        raise ConfigurationError(f"scenario: {target!r} has no difficulties; {known} have")
    difficulty = tables.difficulty_weights.copy()
    difficulty[_code(target)] = _drawable(target, weights, presets)
    return tables._replace(number=tables.number + 1, difficulty_weights=difficulty)


def _drawable(target: str, weights: Sequence[float], presets: PresetTables) -> core.Floats:
    """Weights of the difficulties, each of which has a preset where it has a weight."""
    given = _proportions(weights, target)
    if len(given) != DIFFICULTIES[target]:
        raise ConfigurationError(
            f"scenario: {target} has {DIFFICULTIES[target]} difficulties (got {len(given)} weights)"
        )
    for difficulty in np.flatnonzero((given > 0) & ~_has_preset(target, presets)) + 1:
        raise ConfigurationError(
            f"scenario: {target} has no preset of difficulty {difficulty}, which has a weight"
        )
    return given


def _has_preset(target: str, presets: PresetTables) -> core.Bools:
    has: core.Bools = presets.kind_count[_code(target), 1:] > 0
    return has


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


def _weights(scenario: Scenario, presets: PresetTables) -> tuple[core.Floats, core.Floats]:
    targets = np.zeros(core.TARGET_COUNT)
    codes = [_code(name) for name in scenario.targets]
    targets[codes] = _proportions(scenario.targets.values(), "targets")
    difficulty = np.zeros((core.TARGET_COUNT, core.DIFFICULTY_COUNT))
    for name, levels in DIFFICULTIES.items():
        if levels and targets[TARGETS[name]] > 0:
            difficulty[TARGETS[name]] = _difficulties(name, scenario, presets)
    for name in scenario.difficulty:
        _code(name)
    return targets, difficulty


def _difficulties(target: str, scenario: Scenario, presets: PresetTables) -> core.Floats:
    """Weights as given for the difficulties of `target`; without any, equal ones."""
    if target in scenario.difficulty:
        return _drawable(target, scenario.difficulty[target], presets)
    equal = _has_preset(target, presets).astype(np.float64)
    if not equal.any():
        raise ConfigurationError(f"scenario: there is no preset of {target}")
    return equal


def _code(name: str) -> int:
    if name not in TARGETS:
        raise ConfigurationError(f"scenario: no target {name!r}; there are {', '.join(TARGETS)}")
    return TARGETS[name]


def _bounds(settings: ArenaSettings) -> core.Floats:
    """[P, 2]; what bounds the observation never grows beyond its declaration."""
    declared = parameter_values(settings)
    limits = parameter_bounds()
    return np.array(
        [
            (limits[name].low, declared[name] if name in DECLARED else limits[name].high)
            for name in core.PARAMETERS
        ]
    )


def _samplers(values: Mapping[str, ParameterValue]) -> dict[str, np.ndarray]:
    count = len(core.PARAMETERS)
    ranges = [
        value.sampler_parameters.intervals
        for value in values.values()
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
    for index, name in enumerate(core.PARAMETERS):
        _fill(arrays, index, values[name])
    return arrays


def _fill(arrays: dict[str, np.ndarray], index: int, value: ParameterValue) -> None:
    if isinstance(value, int | float):
        arrays["sampler_values"][index, 0] = value
        return
    if isinstance(value, Uniform):
        given = value.sampler_parameters
        arrays["sampler"][index] = core.UNIFORM
        arrays["sampler_values"][index] = given.min_value, given.max_value
    elif isinstance(value, Gaussian):
        arrays["sampler"][index] = core.GAUSSIAN
        arrays["sampler_values"][index] = (
            value.sampler_parameters.mean,
            value.sampler_parameters.st_dev,
        )
    else:
        intervals = value.sampler_parameters.intervals
        arrays["sampler"][index] = core.RANGES
        arrays["sampler_ranges"][index, : len(intervals)] = intervals
        arrays["sampler_range_count"][index] = len(intervals)
    seed = value.sampler_parameters.seed
    arrays["sampler_seeded"][index] = seed is not None
    arrays["sampler_seed"][index] = seed or 0
