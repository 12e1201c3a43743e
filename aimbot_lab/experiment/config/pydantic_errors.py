"""What pydantic refused, as faults at the keys of the file, in the words of who writes YAML.

The keys that a file may hold are read from the classes that validate it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Tag, ValidationError
from pydantic_core import ErrorDetails

from aimbot_lab.experiment.config.diagnostics import Diagnostic, KeyPath, shown_value
from aimbot_lab.foundation.registry import BROKEN, SettingsByName

UNKNOWN = "unexpected_keyword_argument"
_SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        "missing": "is missing",
        "unexpected_keyword_argument": "unknown key",
        "literal_error": "must be {expected} (got {got})",
        "greater_than": "must be greater than {gt} (got {got})",
        "greater_than_equal": "must be at least {ge} (got {got})",
        "less_than": "must be less than {lt} (got {got})",
        "less_than_equal": "must be at most {le} (got {got})",
        "finite_number": "must be a finite number (got {got})",
        "float_type": "must be a number (got {got})",
        "int_type": "must be a whole number (got {got})",
        "bool_type": "must be true or false (got {got})",
        "string_type": "must be text (got {got})",
        "string_too_short": "must not be empty",
        "string_too_long": "must have at most {max_length} characters",
        "too_short": "must not be empty",
        "too_few": "must hold at least {min_length} values (got {actual_length})",
        "too_long": "must hold {max_length} values (got {actual_length})",
        "parameter_type": "must be a number or a sampler (got {got})",
        "schedule_type": "must be a number or a schedule (got {got})",
        "reward_scale_type": "must be a number or 'running' (got {got})",
        "environment_parameter_type": "must be a number, a sampler or a curriculum (got {got})",
        "option_type": "must be a number, true, false or null (got {got})",
        "dataclass_type": "must be a mapping of keys (got {got})",
        "model_attributes_type": "must be a mapping of keys (got {got})",
        "dict_type": "must be a mapping of keys (got {got})",
        "mapping_type": "must be a mapping of keys (got {got})",
        "tuple_type": "must be a list (got {got})",
        "value_error": "{error}",
    }
)

_RENAMED: Mapping[str, str] = MappingProxyType({"duel_ppo": "hybrid_ppo"})  # old to new values


def section_diagnostics(refusal: ValidationError, root: type) -> Iterator[Diagnostic]:
    """The faults for which pydantic refused data of the class `root`."""
    errors = refusal.errors(include_url=False)
    places = [error["loc"] for error in errors if error["type"] != UNKNOWN]
    unnamed = {place[:-1] for place in places if names_a_kind(root, place)}
    for error in errors:
        if error["type"] == UNKNOWN and error["loc"][:-1] in unnamed:
            continue  # whose keys they are is not known
        if error["type"].startswith("union_tag_"):
            yield from _kind_diagnostics(error, root)
        elif error["type"] == BROKEN:
            path = without_tags(root, error["loc"])
            yield Diagnostic((*path, error["ctx"]["key"]), error["ctx"]["what"])
        elif not _is_echo(error):
            for fault in _diagnostics(error, root):
                yield fault._replace(path=without_tags(root, fault.path))


def _is_echo(error: ErrorDetails) -> bool:
    """Whether a list is called too short only because its items are wrong."""
    is_short = error["type"] == "too_short"
    return is_short and bool(len(error["input"]) >= error["ctx"]["min_length"])


def _kind_diagnostics(error: ErrorDetails, root: type) -> Iterator[Diagnostic]:
    """The faults of a mapping that may be of several kinds and does not say which it is."""
    path = without_tags(root, error["loc"])
    valid = keys_at(root, error["loc"])
    key, what = describe_tag(error)
    yield Diagnostic((*path, key), what)
    open_ended = packages_add_to(root, error["loc"])
    for other in error["input"]:
        if other not in valid and not open_ended:  # whose keys they are is not known
            yield Diagnostic(
                (*path, other), f"unknown key ({advice(other, valid)})", about_key=True
            )


def _diagnostics(error: ErrorDetails, root: type) -> Iterator[Diagnostic]:
    """The fault of `error`; several where a class refused its values in several lines."""
    path = error["loc"]
    what = describe(error)
    if error["type"] == UNKNOWN:
        valid, key = keys_at(root, path[:-1]), str(path[-1])
        of = kind_of_another_key(root, path)
        yield Diagnostic(path, f"{what}{of} ({advice(key, valid)})", about_key=True)
    elif error["type"] == "value_error":
        yield from (_value_diagnostic(path, line, root) for line in what.splitlines())
    else:
        yield Diagnostic(path, what)


def _value_diagnostic(path: KeyPath, what: str, root: type) -> Diagnostic:
    """The fault of a section, at the key that its message begins with if it does."""
    word, _, rest = what.partition(" ")
    *sections, key = word.split(".")
    if key in keys_at(root, (*path, *sections)):
        return Diagnostic((*path, *sections, key), rest)
    return Diagnostic(path, what)


def describe(error: ErrorDetails) -> str:
    """What was wrong and what is allowed."""
    value = error["input"]
    if error["type"] == "literal_error" and isinstance(value, str) and value in _RENAMED:
        return f"{value} is called {_RENAMED[value]} now"
    sentence = _SENTENCES.get(_kind(error))
    if sentence is None:
        return f"{error['msg'].lower()} (got {shown_value(error['input'])})"
    known = {name: _as_written(value) for name, value in error.get("ctx", {}).items()}
    return sentence.format(got=shown_value(error["input"]), **known)


def _as_written(value: object) -> object:
    """A bound as a person writes it: 0 and not 0.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _kind(error: ErrorDetails) -> str:
    """The kind of `error`; a list with some values, but fewer than it takes, is not empty."""
    lacks_several = error["type"] == "too_short" and error["ctx"]["min_length"] > 1
    return "too_few" if lacks_several else error["type"]


def describe_tag(error: ErrorDetails) -> tuple[str, str]:
    """The key that discriminates the kinds of mapping, and what is wrong with it."""
    context = error["ctx"]
    key = context["discriminator"].strip("'").removesuffix("()")
    if error["type"] == "union_tag_not_found":
        return key, "is missing"
    allowed = " or ".join(context["expected_tags"].rsplit(", ", 1))
    return key, f"must be {allowed} (got {shown_value(error['input'][key])})"


def packages_add_to(root: type, path: KeyPath) -> bool:
    """Whether installed packages can extend the mapping at `path` below `root`."""
    return _by_name(_at(root, path)) is not None


def names_a_kind(root: type, path: KeyPath) -> bool:
    """Whether the value at `path`, kinds of settings included, names one that packages add to."""
    by_name = _by_name(_at(root, path[:-2]))
    return by_name is not None and path[-1:] == (by_name.registry.key,)


def kind_of_another_key(root: type, path: KeyPath) -> str:
    """The variant at `path`, such as " of world arena", where the unknown key is of another one.

    Empty elsewhere. Parts of `path` name variants of settings.
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
