"""A scenario as arrays for the kernels."""

from collections.abc import Callable, Mapping

import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.kernels.sampler_arrays import proportions, sampler_arrays
from aimbot_lab.foundation.samplers import ParameterValue, as_parameter
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.foundation.world_type import Bounds
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
    targets[codes] = proportions(scenario.targets.values(), "targets")
    difficulty = np.ones((core.TARGET_COUNT, core.DIFFICULTY_COUNT))
    for name, weights in scenario.difficulty.items():
        code, count = _code(name), DIFFICULTIES[name]
        if count == 0:
            raise ConfigurationError(f"scenario: {name} has no difficulties: leave it out")
        if len(weights) != count:
            what = f"{name} has {count} difficulties (got {len(weights)} weights)"
            raise ConfigurationError(f"scenario: {what}")
        difficulty[code] = proportions(weights, name)
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
    limits = [bounds[name] for name in core.PARAMETERS]
    return SamplerTables(
        **sampler_arrays([values[name] for name in core.PARAMETERS]),
        bounds=np.array([(one.low, one.high) for one in limits], np.float64),
        whole=np.array([one.whole for one in limits]),
    )


def _code(name: str) -> int:
    if name not in TARGETS:
        raise ConfigurationError(f"scenario: no target {name!r}; there are {', '.join(TARGETS)}")
    return TARGETS[name]
