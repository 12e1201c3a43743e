"""The arena's numbers that a scenario may set, by name, with the values they take."""

from collections.abc import Mapping
from functools import cache
from math import ceil, floor, inf
from typing import Any, get_args, get_type_hints

from annotated_types import Ge, Gt, Interval, Le, Lt

from aimbot_lab.foundation.samplers import (
    Gaussian,
    ParameterValue,
    as_parameter,
    extremes,
    intervals_of,
)
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.crowding import most_bystanders, most_free_enemies
from aimbot_lab.worlds.arena.settings import ArenaSettings

OPEN_BOUND = 1e-6  # distance that a sampled value keeps from a bound it must not reach
DECLARED = ("time_limit", "floor_size", "rays.range")  # they bound the observation
CROWD = ("enemy_radius", "agent_radius", "free_enemies", "bystanders")
GAPS = ("block_gap_to_walls", "block_gap_to_agent", "agent_radius")  # they narrow the floor


def parameter_values(settings: ArenaSettings) -> dict[str, float]:
    """Every number that a scenario may change, by its name, as `settings` give it."""
    values: dict[str, float] = {}
    for name in core.PARAMETERS:
        owner: Any = settings
        for part in name.split("."):
            owner = getattr(owner, part)
        values[name] = float(owner)
    return values


@cache
def parameter_bounds() -> dict[str, Bounds]:
    """The values that each parameter takes, as its setting declares them."""
    return {name: _bounds(parameter_type(name)) for name in core.PARAMETERS}


def parameter_type(name: str) -> Any:
    """The annotated type of a parameter's setting."""
    kind: Any = ArenaSettings
    for part in name.split("."):
        kind = get_type_hints(kind, include_extras=True)[part]
    return kind


def _bounds(kind: Any) -> Bounds:
    base, *marks = get_args(kind)
    low, high = float("-inf"), float("inf")
    for mark in marks:
        for part in mark if isinstance(mark, Interval) else (mark,):
            if isinstance(part, Ge):
                low = float(part.ge)  # type: ignore[arg-type]
            elif isinstance(part, Gt):
                low = float(part.gt) + OPEN_BOUND  # type: ignore[arg-type]
            elif isinstance(part, Le):
                high = float(part.le)  # type: ignore[arg-type]
            elif isinstance(part, Lt):
                high = float(part.lt) - OPEN_BOUND  # type: ignore[arg-type]
    if base is bool:
        return Bounds(0.0, 1.0, whole=True)
    return Bounds(low, high, whole=base is int)


def parameter_fault(name: str, value: ParameterValue, settings: ArenaSettings | None) -> str | None:
    """What is wrong with giving parameter `name` that value, None where nothing is.

    Without settings only what holds in every arena is checked.
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
    declared = parameter_values(settings)[name] if settings and name in DECLARED else inf
    if high > declared:
        return f"must not exceed env.{name}, which bounds the observation ({declared:g})"
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


def crowded_floor(given: Mapping[str, ParameterValue], settings: ArenaSettings) -> str | None:
    """Why a block or the enemies might not fit with these parameters, None where they do."""
    values = {**parameter_values(settings), **given}
    limits = parameter_bounds()
    highest = {name: min(extremes(values[name])[1], limits[name].high) for name in (*GAPS, *CROWD)}
    needed = 2.0 * (core.BLOCK_SIZE + sum(highest[name] for name in GAPS))
    floor_size = max(extremes(values["floor_size"])[0], limits["floor_size"].low)
    if floor_size >= needed:
        return _crowd_fault(highest, floor_size)
    for name in GAPS:
        if extremes(values[name])[1] == inf:
            return f"{name} must be drawn within bounds, so that a block fits beside the agent"
    return (
        f"floor_size must be at least {needed:g} with these gaps, so that a block "
        f"fits beside the agent (got {floor_size:g})"
    )


def _crowd_fault(highest: Mapping[str, float], floor_size: float) -> str | None:
    lengths = floor_size, highest["enemy_radius"], highest["agent_radius"]
    for name, most in (
        ("free_enemies", most_free_enemies(*lengths)),
        ("bystanders", most_bystanders(*lengths)),
    ):
        if highest[name] > most:
            return (
                f"{name} must be at most {most} with this floor and these radii, so that "
                f"each finds a free place (got {highest[name]:g})"
            )
    return None
