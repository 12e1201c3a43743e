"""A scenario as arrays for the kernels."""

from collections.abc import Mapping, Sequence

import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.kernels.sampler_arrays import proportions, sampler_arrays
from aimbot_lab.foundation.samplers import ParameterValue, as_parameter
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
        **sampler_arrays([values[name] for name in core.PARAMETERS]),
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
    given = proportions(weights, target)
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


def _weights(scenario: Scenario, presets: PresetTables) -> tuple[core.Floats, core.Floats]:
    targets = np.zeros(core.TARGET_COUNT)
    codes = [_code(name) for name in scenario.targets]
    targets[codes] = proportions(scenario.targets.values(), "targets")
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
