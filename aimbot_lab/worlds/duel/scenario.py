"""A scenario as arrays for the kernels."""

from collections.abc import Collection, Mapping

import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.kernels.sampler_arrays import proportions, sampler_arrays
from aimbot_lab.foundation.samplers import ParameterValue, as_parameter
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.duel.core.state import (
    AWAY,
    LEVELS,
    OF_SEATS,
    PARAMETERS,
    ScenarioTables,
)
from aimbot_lab.worlds.duel.kinds import KINDS
from aimbot_lab.worlds.duel.parameters import (
    declared_bounds,
    parameter_fault,
    parameter_values,
)
from aimbot_lab.worlds.duel.settings import DuelSettings


def scenario_tables(
    scenario: Scenario, settings: DuelSettings, *, kinds: Collection[str], number: int
) -> ScenarioTables:
    """What the next matches are drawn from, as scenario `number`; their targets are `kinds`.

    Raises ConfigurationError for an unknown target or parameter, a value that a parameter does
    not take, and weights that leave nothing to draw.
    """
    weights, difficulties = _weights(scenario, kinds)
    values = _parameters(scenario.parameters, settings)
    bounds = [declared_bounds(settings)[name] for name in PARAMETERS]
    return ScenarioTables(
        number=np.array([number]),
        kind_weights=weights,
        difficulty_weights=difficulties,
        **sampler_arrays([values[name] for name in PARAMETERS]),
        bounds=np.array([(one.low, one.high) for one in bounds]),
        whole=np.array([one.whole for one in bounds]),
        handicap=np.array([AWAY + name in scenario.parameters for name in OF_SEATS]),
    )


def _weights(scenario: Scenario, kinds: Collection[str]) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the kinds [KINDS], and of the difficulties of each [KINDS, LEVELS]."""
    for name in (*scenario.targets, *scenario.difficulty):
        if name not in kinds:
            known = ", ".join(kinds)
            raise ConfigurationError(f"scenario: no target {name!r}; there are {known}")
    weights, difficulties = np.zeros(len(KINDS)), np.ones((len(KINDS), LEVELS))
    chosen = [KINDS.index(name) for name in scenario.targets]
    weights[chosen] = proportions(scenario.targets.values(), "targets")
    for name, given in scenario.difficulty.items():
        found = proportions(given, name)
        if len(found) != LEVELS:
            raise ConfigurationError(
                f"scenario: {name} has {LEVELS} difficulties (got {len(found)} weights)"
            )
        difficulties[KINDS.index(name)] = found
    return weights, difficulties


def _parameters(
    given: Mapping[str, ParameterValue], settings: DuelSettings
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
    return {**usual, **{name: as_parameter(value) for name, value in given.items()}}
