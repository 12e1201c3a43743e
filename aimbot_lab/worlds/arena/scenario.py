"""A scenario of the arena: its targets and parameters, checked, and as arrays for the kernels."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import inf

import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.samplers import ParameterValue, extremes
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import TARGETS, PresetTables, ScenarioTables
from aimbot_lab.worlds.arena.settings import CROWD, ArenaSettings, crowd_fault
from aimbot_lab.worlds.parameters import (
    bounds_of,
    level_weights,
    sampler_fields,
    scenario_values,
    setting_of,
    target_number,
    target_weights,
    value_fault,
)

DIFFICULTIES = {
    name: core.DIFFICULTY_COUNT if code in core.OF_BLOCKS else 0 for name, code in TARGETS.items()
}
DECLARED = ("time_limit", "floor_size", "rays.range")  # they bound the observation
GAPS = ("block_gap_to_walls", "block_gap_to_agent", "agent_radius")  # they narrow the floor


def parameter_values(settings: ArenaSettings) -> dict[str, float]:
    """Every number that a scenario may change, by its name, as `settings` give it."""
    return {name: setting_of(settings, name) for name in core.PARAMETERS}


@cache
def parameter_bounds() -> dict[str, Bounds]:
    """The values that each parameter takes, as its setting declares them."""
    return {name: bounds_of(ArenaSettings, name) for name in core.PARAMETERS}


def parameter_fault(name: str, value: ParameterValue, settings: ArenaSettings | None) -> str | None:
    """What is wrong with giving parameter `name` that value, None where nothing is.

    Without settings only what holds in every arena is checked.
    """
    bounds_it = settings is not None and name in DECLARED
    declared = setting_of(settings, name) if bounds_it else inf
    return value_fault(value, parameter_bounds()[name], setting=name, declared=declared)


def crowded_floor(given: Mapping[str, ParameterValue], settings: ArenaSettings) -> str | None:
    """Why a block or the enemies might not fit with these parameters, None where they do."""
    values = {**parameter_values(settings), **given}
    limits = parameter_bounds()
    highest = {name: min(extremes(values[name])[1], limits[name].high) for name in (*GAPS, *CROWD)}
    needed = 2.0 * (core.BLOCK_SIZE + sum(highest[name] for name in GAPS))
    floor_size = max(extremes(values["floor_size"])[0], limits["floor_size"].low)
    if floor_size >= needed:
        return crowd_fault(highest, floor_size)
    for name in GAPS:
        if extremes(values[name])[1] == inf:
            return f"{name} must be drawn within bounds, so that a block fits beside the agent"
    return (
        f"floor_size must be at least {needed:g} with these gaps, so that a block "
        f"fits beside the agent (got {floor_size:g})"
    )


def scenario_tables(
    scenario: Scenario, settings: ArenaSettings, presets: PresetTables, *, number: int
) -> ScenarioTables:
    """What the next episodes are drawn from, as scenario `number`.

    Raises ConfigurationError for an unknown target or parameter, a value that a parameter does
    not take, and weights that leave nothing to draw.
    """
    usual = parameter_values(settings)
    values = scenario_values(
        scenario.parameters, usual, fault=lambda name, one: parameter_fault(name, one, settings)
    )
    fault = crowded_floor(values, settings)
    if fault is not None:
        raise ConfigurationError(f"scenario: {fault}")
    targets, difficulty = _weights(scenario, presets)
    bounds = {
        name: one if name not in DECLARED else Bounds(one.low, usual[name], one.whole)
        for name, one in parameter_bounds().items()
    }
    return ScenarioTables(
        number=np.array([number]),
        target_weights=targets,
        difficulty_weights=difficulty,
        **sampler_fields(values, bounds, core.PARAMETERS),
    )


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
    difficulty[TARGETS[target]] = _drawable(target, weights, presets)
    return tables._replace(number=tables.number + 1, difficulty_weights=difficulty)


def _drawable(target: str, weights: Sequence[float], presets: PresetTables) -> core.Floats:
    """Weights of the difficulties, each of which has a preset where it has a weight."""
    given: core.Floats = level_weights(target, weights, DIFFICULTIES[target])
    for difficulty in np.flatnonzero((given > 0) & ~_has_preset(target, presets)) + 1:
        raise ConfigurationError(
            f"scenario: {target} has no preset of difficulty {difficulty}, which has a weight"
        )
    return given


def _has_preset(target: str, presets: PresetTables) -> core.Bools:
    has: core.Bools = presets.kind_count[TARGETS[target], 1:] > 0
    return has


def _weights(scenario: Scenario, presets: PresetTables) -> tuple[core.Floats, core.Floats]:
    targets = target_weights(scenario.targets, TARGETS, core.TARGET_COUNT)
    difficulty = np.zeros((core.TARGET_COUNT, core.DIFFICULTY_COUNT))
    for name, levels in DIFFICULTIES.items():
        if levels and targets[TARGETS[name]] > 0:
            difficulty[TARGETS[name]] = _difficulties(name, scenario, presets)
    for name in scenario.difficulty:
        target_number(name, TARGETS)
    return targets, difficulty


def _difficulties(target: str, scenario: Scenario, presets: PresetTables) -> core.Floats:
    """Weights as given for the difficulties of `target`; without any, equal ones."""
    if target in scenario.difficulty:
        return _drawable(target, scenario.difficulty[target], presets)
    equal = _has_preset(target, presets).astype(np.float64)
    if not equal.any():
        raise ConfigurationError(f"scenario: there is no preset of {target}")
    return equal
