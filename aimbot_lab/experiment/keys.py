"""The keys that a curriculum file may hold, read from the classes that validate it."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from aimbot_lab.experiment.paths import Path


def keys_at(root: type, path: Path) -> tuple[str, ...]:
    """The keys that the mapping at `path` below `root` may hold; empty where any may."""
    kind: Any = root
    for part in path:
        kind = _child(kind, part)
    names = (
        field.name
        for member in _members(kind) or (kind,)
        if is_dataclass(member)
        for field in fields(member)
    )
    return tuple(dict.fromkeys(names))


def without_tags(root: type, path: Path) -> Path:
    """`path` below `root` without the parts in which pydantic names a member of a union."""
    kind: Any = root
    plain: Path = ()
    for part in path:
        if not _members(kind):
            plain = (*plain, part)
        kind = _child(kind, part)
    return plain


def _child(kind: Any, part: str | int) -> Any:
    members = _members(kind)
    if members:
        return next((member for member in members if _is_tagged(member, part)), kind)
    if is_dataclass(kind):
        return _without_none(get_type_hints(kind).get(str(part)))
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return arguments[0]
    if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping):
        return arguments[1]
    return None


def _without_none(kind: Any) -> Any:
    members = [member for member in _members(kind) if member is not NoneType]
    return members[0] if len(members) == 1 else kind


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else ()


def _is_tagged(kind: Any, tag: str | int) -> bool:
    """Whether `kind` has a field that must read `tag`."""
    hints = get_type_hints(kind).values() if is_dataclass(kind) else ()
    return any(get_origin(hint) is Literal and tag in get_args(hint) for hint in hints)


def advice(wrong: str, allowed: Iterable[str]) -> str:
    """What to write in the place of `wrong`: the nearest of `allowed`, or all of them."""
    names = list(allowed)
    nearest = get_close_matches(wrong, names, n=1)
    if nearest:
        return f"nearest valid key: {nearest[0]}"
    return f"valid keys: {', '.join(names)}"
