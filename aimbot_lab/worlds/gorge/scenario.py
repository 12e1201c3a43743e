"""A scenario of Gorge Walk: its targets and parameters, checked, and as arrays for the kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType

import numpy as np

from aimbot_lab.foundation.samplers import ParameterValue, as_parameter, extremes
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import GorgeScenarioTables, SamplerTables
from aimbot_lab.worlds.gorge.map_choice import Maps, longest_way, too_short, treasure_count
from aimbot_lab.worlds.gorge.settings import (
    MAX_LIMIT,
    MAX_POINTS,
    MAX_REWARD,
    GorgeSettings,
)
from aimbot_lab.worlds.gorge.spec import DIFFICULTIES, TARGETS
from aimbot_lab.worlds.parameters import (
    OPEN_BOUND,
    is_unbounded,
    level_weights,
    sampler_fields,
    scenario_values,
    shown,
    target_number,
    target_weights,
    value_fault,
)

BOUNDS = MappingProxyType(
    {
        **{f"rewards.{term}": Bounds(-MAX_REWARD, MAX_REWARD, False) for term in core.REWARD_TERMS},
        "max_steps": Bounds(1, MAX_LIMIT, True),
        "treasure_num": Bounds(0, core.SITES, True),
        "win_share": Bounds(OPEN_BOUND, 1, False),
        "random_start": Bounds(0, 1, True),
        "score.end": Bounds(0, MAX_POINTS, False),
        "score.step": Bounds(0, MAX_POINTS, False),
    }
)


def parameter_values(settings: GorgeSettings, pool: Sequence[int]) -> dict[str, float]:
    """Every number that a scenario may change, by its name, as `settings` give it."""
    return {
        **{f"rewards.{term}": weight for term, weight in asdict(settings.rewards).items()},
        "max_steps": float(settings.max_steps),
        "treasure_num": float(treasure_count(settings, pool)),
        "win_share": settings.win_share,
        "random_start": float(settings.random_start),
        "score.end": settings.score.end,
        "score.step": settings.score.step,
    }


def bounds_in(settings: GorgeSettings, maps: Maps, pool: Sequence[int]) -> dict[str, Bounds]:
    """The values that each parameter takes in a world with `settings` on `maps`."""
    return {
        **BOUNDS,
        "max_steps": Bounds(longest_way(maps)[0], settings.max_steps, True),
        "treasure_num": Bounds(0, len(pool), True),
    }


def form_fault(name: str, value: ParameterValue) -> str | None:
    """What is wrong with giving parameter `name` that value in any world; None: nothing is."""
    return value_fault(value, BOUNDS[name])


def world_fault(
    name: str, value: ParameterValue, settings: GorgeSettings, maps: Maps, pool: Sequence[int]
) -> str | None:
    """The same in a world with `settings` on `maps`."""
    fault = form_fault(name, value)
    if fault is not None or is_unbounded(as_parameter(value)):
        return fault
    low, high = extremes(as_parameter(value))
    if name == "treasure_num" and high > len(pool):
        return f"must be at most {len(pool)}, the sites in the pool (got {shown(low, high)})"
    if name == "max_steps":
        longest, map_name = longest_way(maps)
        if low < longest:
            return f"{too_short(longest, map_name)} (got {shown(low, high)})"
        if high > settings.max_steps:
            limit = f"{settings.max_steps:g}"
            return f"must not exceed env.max_steps, which bounds the observation ({limit})"
    return None


def scenario_tables(scenario: Scenario, *, number: int) -> GorgeScenarioTables:
    """The targets and difficulties of the next episodes, as scenario `number`.

    Raises ConfigurationError for an unknown target, and weights that leave nothing to draw.
    """
    targets = target_weights(scenario.targets, TARGETS, core.TARGET_COUNT)
    difficulty = np.ones((core.TARGET_COUNT, core.DIFFICULTY_COUNT))
    for name, weights in scenario.difficulty.items():
        code = target_number(name, TARGETS)
        difficulty[code] = level_weights(name, weights, DIFFICULTIES[name])
    return GorgeScenarioTables(np.array([number]), targets, difficulty)


def sampler_tables(
    given: Mapping[str, ParameterValue], settings: GorgeSettings, maps: Maps, pool: Sequence[int]
) -> SamplerTables:
    """What draws each parameter in a world with `settings` on `maps`: as `given`, else as usual.

    Raises ConfigurationError for an unknown parameter and a value that one does not take.
    """
    values = scenario_values(
        given,
        parameter_values(settings, pool),
        fault=lambda name, value: world_fault(name, value, settings, maps, pool),
    )
    bounds = bounds_in(settings, maps, pool)
    return SamplerTables(**sampler_fields(values, bounds, core.PARAMETERS))
