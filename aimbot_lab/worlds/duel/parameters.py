"""The duel's numbers that a scenario may set, by name, with the values they take.

`NAME` holds for both agents, `away.NAME` for the away agent alone.
"""

from functools import cache
from math import ceil, floor
from typing import Any

from aimbot_lab.foundation.samplers import (
    Gaussian,
    ParameterValue,
    as_parameter,
    extremes,
    intervals_of,
)
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.duel.bounds import bounds_of
from aimbot_lab.worlds.duel.core.state import AWAY, PARAMETERS
from aimbot_lab.worlds.duel.settings import DuelSettings

DECLARED = ("time_limit", "rays.range")  # they bound the observation


def parameter_values(settings: DuelSettings) -> dict[str, float]:
    """Every number that a scenario may change, by its name, as `settings` give it."""
    return {name: _setting(settings, name.removeprefix(AWAY)) for name in PARAMETERS}


def _setting(settings: DuelSettings, name: str) -> float:
    owner: Any = settings
    for part in name.split("."):
        owner = getattr(owner, part)
    return float(owner)


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
    bounds = parameter_bounds()[name]
    try:
        value = as_parameter(value)
    except TypeError as error:
        return str(error)
    low, high = extremes(value)
    # A Gaussian has no ends: what it draws beyond a bound is moved to the bound.
    if isinstance(value, Gaussian) and low < high:
        return None
    fault = _fraction(value) if bounds.whole else None
    if fault is not None:
        return fault
    declared = declared_bounds(settings)[name].high if settings else bounds.high
    if bounds.high >= high > declared:
        setting = name.removeprefix(AWAY)
        return f"must not exceed env.{setting}, which bounds the observation ({declared:g})"
    if not bounds.low <= low <= high <= bounds.high:
        return f"must {bounds} (got {_shown(low, high)})"
    return None


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
