"""The keys that a curriculum file may hold, read from the classes that validate it."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from aimbot_lab.experiment.paths import Path


def keys_at(root: type, path: Path) -> tuple[str, ...]:
    """The keys that the mapping at `path` below `root` may hold; empty where any may."""
    kind: Any = root
    for part in path:
        kind = _child(kind, part)
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def _child(kind: Any, part: str | int) -> Any:
    if is_dataclass(kind):
        return _without_none(get_type_hints(kind).get(str(part)))
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return arguments[0]
    if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping):
        return arguments[1]
    return None


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        return next(member for member in get_args(kind) if member is not NoneType)
    return kind


def advice(wrong: str, allowed: Iterable[str]) -> str:
    """What to write in the place of `wrong`: the nearest of `allowed`, or all of them."""
    names = list(allowed)
    nearest = get_close_matches(wrong, names, n=1)
    if nearest:
        return f"nearest valid key: {nearest[0]}"
    return f"valid keys: {', '.join(names)}"
