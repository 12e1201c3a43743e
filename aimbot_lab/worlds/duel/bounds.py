"""The values that settings take, read from their annotations."""

from typing import Any, get_args, get_type_hints

from annotated_types import Ge, Gt, Interval, Le, Lt

from aimbot_lab.foundation.world_type import Bounds

OPEN_BOUND = 1e-6  # distance that a sampled value keeps from a bound it must not reach


def bounds_of(settings: Any, name: str) -> Bounds:
    """What the setting `name`, such as `rays.range`, of the class `settings` takes."""
    kind: Any = settings
    for part in name.split("."):
        kind = get_type_hints(kind, include_extras=True)[part]
    return _bounds(kind)


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
    return Bounds(low, high, whole=base is int)
