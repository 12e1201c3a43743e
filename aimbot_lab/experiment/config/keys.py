"""The keys that a curriculum file may hold, read from the classes that validate it."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Tag

from aimbot_lab.experiment.config.key_path import KeyPath
from aimbot_lab.foundation.settings_by_name import SettingsByName


def packages_add_to(root: type, path: KeyPath) -> bool:
    """Whether installed packages bring kinds of the mapping at `path` below `root`."""
    return _by_name(_at(root, path)) is not None


def names_a_kind(root: type, path: KeyPath) -> bool:
    """Whether the value at `path`, kinds of settings included, names one that packages add to."""
    by_name = _by_name(_at(root, path[:-2]))
    return by_name is not None and path[-1:] == (by_name.registry.key,)


def kind_of_another_key(root: type, path: KeyPath) -> str:
    """Of which kind the mapping is that has no key as at `path`, where another kind has it.

    Such as " of world arena"; empty elsewhere. Parts of `path` name kinds of settings.
    """
    by_name = _by_name(_at(root, path[:-2]))
    known = () if by_name is None else by_name.keys()
    if by_name is None or path[-1] not in known:
        return ""
    return f" of {by_name.registry.noun} {path[-2]}"


def keys_at(root: type, path: KeyPath) -> tuple[str, ...]:
    """The keys that the mapping at `path` below `root` may hold; empty where any may."""
    kind = _at(root, path)
    by_name = _by_name(kind)
    if by_name is not None:
        return by_name.keys()
    names = (
        field.name
        for member in _members(kind) or (kind,)
        if is_dataclass(_plain(member))
        for field in fields(_plain(member))
    )
    return tuple(dict.fromkeys(names))


def _at(root: type, path: KeyPath) -> Any:
    kind: Any = root
    for part in path:
        kind = _child(kind, part)
    return kind


def without_tags(root: type, path: KeyPath) -> KeyPath:
    """`path` below `root` without the parts in which pydantic names a member of a union."""
    kind: Any = root
    plain: KeyPath = ()
    for part in path:
        if not _members(kind) and _by_name(kind) is None:
            plain = (*plain, part)
        kind = _child(kind, part)
    return plain


def _child(kind: Any, part: str | int) -> Any:
    by_name = _by_name(kind)
    if by_name is not None:
        return by_name.settings(str(part))
    members = _members(kind)
    if members:
        return next((member for member in members if _is_tagged(member, part)), kind)
    kind = _plain(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return _without_none(_hints(kind).get(str(part)))
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return arguments[0]
    if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping):
        return arguments[1]
    return None


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _by_name(kind: Any) -> SettingsByName | None:
    """What chooses the class of such settings by a name in them, if anything does."""
    marks = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((mark for mark in marks if isinstance(mark, SettingsByName)), None)


def _plain(kind: Any) -> Any:
    """`kind` without what it is annotated with."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _without_none(kind: Any) -> Any:
    members = [member for member in _members(kind) if member is not NoneType]
    return members[0] if len(members) == 1 else kind


def _members(kind: Any) -> tuple[Any, ...]:
    plain = _plain(kind)
    return get_args(plain) if get_origin(plain) in (Union, UnionType) else ()


def _is_tagged(kind: Any, tag: str | int) -> bool:
    """Whether `kind` bears `tag`, or has a field that must read so."""
    if get_origin(kind) is Annotated and any(mark == Tag(str(tag)) for mark in get_args(kind)[1:]):
        return True
    plain = _plain(kind)
    hints = get_type_hints(plain).values() if is_dataclass(plain) else ()
    return any(get_origin(hint) is Literal and tag in get_args(hint) for hint in hints)


def advice(wrong: str, allowed: Iterable[str]) -> str:
    """What to write in the place of `wrong`: the nearest of `allowed`, or all of them."""
    names = list(allowed)
    nearest = get_close_matches(wrong, names, n=1)
    if nearest:
        return f"nearest valid key: {nearest[0]}"
    return f"valid keys: {', '.join(names)}"
