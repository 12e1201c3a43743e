"""Gorge Walk's numbers that a scenario may set, by name, with the values they take."""

from collections.abc import Sequence
from dataclasses import asdict
from math import ceil, floor
from types import MappingProxyType

from pydantic import TypeAdapter

from aimbot_lab.foundation.samplers import (
    Gaussian,
    ParameterValue,
    as_parameter,
    extremes,
    intervals_of,
)
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.map_choice import Maps, longest_way, too_short, treasure_count
from aimbot_lab.worlds.gorge.settings import (
    MAX_LIMIT,
    MAX_POINTS,
    MAX_REWARD,
    GorgeSettings,
    RewardWeights,
    ScoreSettings,
)


def _text(kind: type, name: str) -> str:
    return str(TypeAdapter(kind).json_schema()["properties"][name]["description"])


OPEN_BOUND = 1e-6  # distance that a sampled value keeps from a bound it must not reach
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

TEXTS = MappingProxyType(
    {
        **{f"rewards.{term}": _text(RewardWeights, term) for term in core.REWARD_TERMS},
        **{
            name: _text(GorgeSettings, name)
            for name in ("max_steps", "treasure_num", "win_share", "random_start")
        },
        **{f"score.{part}": _text(ScoreSettings, part) for part in ("end", "step")},
    }
)
"""What the setting of each parameter's name says about itself."""


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
    try:
        value = as_parameter(value)
    except TypeError as error:
        return str(error)
    bounds = BOUNDS[name]
    if _has_no_ends(value):
        return None
    fault = _fraction(value) if bounds.whole else None
    low, high = extremes(value)
    if fault is None and not bounds.low <= low <= high <= bounds.high:
        fault = f"must {bounds} (got {_shown(low, high)})"
    return fault


def world_fault(
    name: str, value: ParameterValue, settings: GorgeSettings, maps: Maps, pool: Sequence[int]
) -> str | None:
    """The same in a world with `settings` on `maps`."""
    fault = form_fault(name, value)
    if fault is not None or _has_no_ends(as_parameter(value)):
        return fault
    low, high = extremes(as_parameter(value))
    if name == "treasure_num" and high > len(pool):
        return f"must be at most {len(pool)}, the sites in the pool (got {_shown(low, high)})"
    if name == "max_steps":
        longest, map_name = longest_way(maps)
        if low < longest:
            return f"{too_short(longest, map_name)} (got {_shown(low, high)})"
        if high > settings.max_steps:
            limit = f"{settings.max_steps:g}"
            return f"must not exceed env.max_steps, which bounds the observation ({limit})"
    return None


def _has_no_ends(value: ParameterValue) -> bool:
    """Whether what it draws beyond a bound is moved to the bound."""
    low, high = extremes(value)
    return isinstance(value, Gaussian) and low < high


def _fraction(value: ParameterValue) -> str | None:
    """Why `value` does not give whole numbers, None where it does."""
    if isinstance(value, float) and not value.is_integer():
        return f"must be a whole number (got {value:g})"
    for low, high in intervals_of(value):
        if ceil(low) > floor(high):
            return f"must be drawn where there are whole numbers (got {_shown(low, high)})"
    return None


def _shown(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
