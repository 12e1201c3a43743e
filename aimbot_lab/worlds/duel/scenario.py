"""A scenario of the duel: its kinds of matches and parameters, and as arrays for the kernels.

The parameter `NAME` holds for both agents, `away.NAME` for the away agent alone.
"""

from collections.abc import Collection
from functools import cache
from math import inf

import numpy as np

from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.duel.core.state import (
    AWAY,
    KINDS,
    LEVELS,
    OF_SEATS,
    PARAMETERS,
    DuelScenarioTables,
)
from aimbot_lab.worlds.duel.settings import DuelSettings
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

DECLARED = ("time_limit", "rays.range")  # they bound the observation


def parameter_values(settings: DuelSettings) -> dict[str, float]:
    """Every number that a scenario may change, by its name, as `settings` give it."""
    return {name: setting_of(settings, name.removeprefix(AWAY)) for name in PARAMETERS}


@cache
def parameter_bounds() -> dict[str, Bounds]:
    """The values that each parameter takes, as its setting declares them."""
    return {name: bounds_of(DuelSettings, name.removeprefix(AWAY)) for name in PARAMETERS}


def declared_bounds(settings: DuelSettings) -> dict[str, Bounds]:
    """`parameter_bounds`, those that bound the observation no wider than `settings` declare."""
    usual = parameter_values(settings)
    return {
        name: bounds
        if name.removeprefix(AWAY) not in DECLARED
        else Bounds(bounds.low, usual[name], bounds.whole)
        for name, bounds in parameter_bounds().items()
    }


def parameter_fault(name: str, value: ParameterValue, settings: DuelSettings | None) -> str | None:
    """What is wrong with giving parameter `name` that value, None where nothing is.

    Without settings only what holds in every duel is checked.
    """
    setting = name.removeprefix(AWAY)
    declared = setting_of(settings, setting) if settings and setting in DECLARED else inf
    return value_fault(value, parameter_bounds()[name], setting=setting, declared=declared)


def scenario_tables(
    scenario: Scenario, settings: DuelSettings, *, kinds: Collection[str], number: int
) -> DuelScenarioTables:
    """What the next matches are drawn from, as scenario `number`; their targets are `kinds`.

    Raises ConfigurationError for an unknown target or parameter, a value that a parameter does
    not take, and weights that leave nothing to draw.
    """
    numbers = {name: KINDS.index(name) for name in kinds}
    weights = target_weights(scenario.targets, numbers, len(KINDS))
    difficulties = np.ones((len(KINDS), LEVELS))
    for name, given in scenario.difficulty.items():
        difficulties[target_number(name, numbers)] = level_weights(name, given, LEVELS)
    values = scenario_values(
        scenario.parameters,
        parameter_values(settings),
        fault=lambda name, value: parameter_fault(name, value, settings),
    )
    return DuelScenarioTables(
        number=np.array([number]),
        kind_weights=weights,
        difficulty_weights=difficulties,
        **sampler_fields(values, declared_bounds(settings), PARAMETERS),
        handicap=np.array([AWAY + name in scenario.parameters for name in OF_SEATS]),
    )
