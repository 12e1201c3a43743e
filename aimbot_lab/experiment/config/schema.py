"""JSON Schemas of the files that a user writes, and what is wrong with a value, in words of YAML.

Both are made from the classes that validate these files. An editor completes and checks with the
schemas: they accept every file that is fit to run, and refuse what is wrong in form; what hangs
together between keys, only the check sees. The docstrings under the fields of the classes become
the descriptions.
"""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Tag, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from aimbot_lab.curriculum.rules import MEASURES, RULES, Bounds, rule_class
from aimbot_lab.experiment.config.yaml_reader import Diagnostic, KeyPath, shown_value
from aimbot_lab.foundation.registry import BROKEN, SettingsByName
from aimbot_lab.foundation.shown_text import allowed_names, nearest_name
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.networks.network import NETWORKS
from aimbot_lab.worlds.registry import WORLDS, default_type, world_types

DIALECT = "http://json-schema.org/draft-07/schema#"
WIDTH = 100

Schema = dict[str, Any]

# pydantic leaves these marks as they are where a field turns 5e6 into a whole number.
_BOUNDS: Mapping[str, str] = MappingProxyType(
    {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
)
_NOISE = frozenset({"title", "discriminator"})
_REFERENCE: Schema = {
    "description": "The value of another key, such as ${train.n_steps}.",
    "type": "string",
    "pattern": r"\$\{[\w.\[\]]+\}",
}
_GROUPED: Schema = {
    "description": "A number with underscores, which many editors take for a text.",
    "type": "string",
    "pattern": r"^[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?$",
}
_WRITTEN: Schema = {
    "reference": _REFERENCE,
    "written_number": {"anyOf": [{"$ref": "#/$defs/reference"}, _GROUPED]},
}


def document_schema(document: type, *, title: str) -> Schema:
    """The JSON Schema of files that `document`, a pydantic dataclass, validates."""
    plain = _plain(TypeAdapter(document).json_schema())
    assert isinstance(plain, dict)
    definitions = plain.pop("$defs", {})
    _describe_inherited(definitions)
    _close(definitions, plain.get("properties", {}))
    return {
        "$schema": DIALECT,
        "title": title,
        **_writable(plain),
        **_lessons_by_world(plain.get("properties", {})),
        "$defs": {**{name: _writable(kind) for name, kind in definitions.items()}, **_WRITTEN},
    }


def _describe_inherited(definitions: Schema) -> None:
    """Give settings of an algorithm the descriptions of the fields that all algorithms have."""
    usual = definitions.get("TrainSettings", {}).get("properties", {})
    for keys in (kind.get("properties", {}) for kind in definitions.values()):
        for name in usual.keys() & keys.keys() if "algo" in keys else ():
            keys[name].setdefault("description", usual[name].get("description", ""))


def missing_entries() -> tuple[str, ...]:
    """What installed packages bring and a schema can't know, a line each."""
    registries = WORLDS, ALGORITHMS, NETWORKS
    return tuple(line for registry in registries for line in registry.loadable()[1])


def _plain(node: Any) -> Any:
    """`node` in the words that every editor knows."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain: Schema = {}
    for key, value in node.items():
        if key == "properties":  # whose names are no words of a schema
            plain[key] = {name: _plain(kind) for name, kind in value.items()}
        elif key not in _NOISE:
            plain[_BOUNDS.get(key, key)] = _plain(value)
    items = plain.pop("prefixItems", None)
    if items:
        assert all(item == items[0] for item in items), "a tuple of several kinds"
        plain["items"] = items[0]
    return plain


def _close(definitions: Schema, root: Schema) -> None:
    """Say what the classes check in code: which targets and parameters there are, and bounds."""
    criteria = definitions.get("CompletionCriteria")
    if criteria is not None:
        criteria["allOf"] = [*_bounded_thresholds(criteria["properties"])]
    if "Lesson" not in definitions:
        return
    root["lessons"].pop("items")  # which `_lessons_by_world` gives
    definitions["LessonOfAnotherWorld"] = deepcopy(definitions["Lesson"])
    lesson: Schema = definitions["Lesson"]["properties"]
    targets = default_type().targets(None)
    weight = lesson["targets"].pop("additionalProperties")
    _name_keys(lesson["targets"], dict.fromkeys(targets, weight))
    weights = lesson["difficulty"].pop("additionalProperties")
    listed = {
        target: {**weights, "minItems": count, "maxItems": count}
        for target, count in targets.items()
        if count
    }
    _name_keys(lesson["difficulty"], listed)
    kinds = lesson["parameters"].pop("additionalProperties")["oneOf"]
    definitions["Sampler"] = next(kind for kind in kinds if "oneOf" in kind)
    _name_keys(lesson["parameters"], _parameters([{"$ref": "#/$defs/Sampler"}]))
    curriculum = {"$ref": "#/$defs/ParameterCurriculum"}
    _name_keys(
        root["environment_parameters"], _parameters([{"$ref": "#/$defs/Sampler"}, curriculum])
    )


def _bounded_thresholds(properties: Schema) -> Iterator[Schema]:
    """That a threshold has the bounds which a rule has for a measure, if both are known.

    They are not where a reference stands for one of them.
    """
    measures_of: dict[tuple[Bounds, tuple[str, ...]], list[str]] = {}
    for name, measure in MEASURES.items():
        bounds_of = {rule: rule_class(rule, measure).bounds(measure) for rule in RULES}
        for bounds in filter(None, dict.fromkeys(bounds_of.values())):
            rules = tuple(rule for rule in RULES if bounds_of[rule] == bounds)
            measures_of.setdefault((bounds, rules), []).append(name)
    for (bounds, among), measures in measures_of.items():
        keys = (("measure", MEASURES.keys(), measures), ("rule", RULES.keys(), among))
        others = {key: [name for name in all_ if name not in some] for key, all_, some in keys}
        unless = [
            {"properties": {key: {"enum": names}}}
            | ({} if properties[key]["default"] in names else {"required": [key]})
            for key, names in others.items()
            if names
        ]
        limits = {"properties": {"threshold": dict(bounds)}}
        yield {"if": {"anyOf": unless}, "else": limits}


def _lessons_by_world(properties: Schema) -> Schema:
    """That targets and parameters are known beforehand in the default world alone."""
    if "lessons" not in properties:
        return {}
    others = [name for name in world_types() if name != default_type().name]
    named = {"properties": {"world": {"enum": others}}, "required": ["world"]}

    def items(kind: str) -> Schema:
        shapes = [{"$ref": f"#/$defs/{kind}"}, {"$ref": "#/$defs/reference"}]
        return {"properties": {"lessons": {"items": {"anyOf": shapes}}}}

    return {
        "if": {"properties": {"env": named}, "required": ["env"]},
        "then": items("LessonOfAnotherWorld"),
        "else": items("Lesson"),
    }


def _name_keys(mapping: Schema, properties: Schema) -> None:
    mapping.update({"properties": properties, "additionalProperties": False})


def _parameters(others: list[Schema]) -> Schema:
    """A number within its bounds, or one of `others`, for each environment parameter."""
    texts = default_type().parameter_texts()
    return {
        name: {
            "description": texts[name],
            "anyOf": [
                {
                    "type": "integer" if bounds.whole else "number",
                    "minimum": bounds.low,
                    "maximum": bounds.high,
                },
                *others,
            ],
        }
        for name, bounds in (default_type().parameters(None) or {}).items()
    }


def _writable(node: Any) -> Any:
    """`node` with what a file may hold in the place of a value: a reference to another key."""
    if isinstance(node, list):
        return [_writable(item) for item in node]
    if not isinstance(node, dict):
        return node
    wider: Schema = {}
    for key, value in node.items():
        if key == "properties":
            wider[key] = {name: _or_reference(_writable(kind)) for name, kind in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            wider[key] = _or_reference(_writable(value))
        elif key != "default" or not isinstance(value, dict):  # a section's keys have their own
            wider[key] = value if key == "default" else _writable(value)
    return wider


def _or_reference(kind: Schema) -> Schema:
    annotations: Schema = {key: kind[key] for key in ("description", "default") if key in kind}
    shape = {key: value for key, value in kind.items() if key not in annotations}
    if not shape or (shape.get("type") == "string" and not shape.keys() & {"enum", "const"}):
        return kind
    shapes = shape["anyOf"] if set(shape) == {"anyOf"} else [shape]
    shapes = shape["oneOf"] if set(shape) == {"oneOf"} else shapes
    is_number = any(one.get("type") in ("integer", "number") for one in shapes)
    written = "written_number" if is_number else "reference"
    return {**annotations, "anyOf": [*shapes, {"$ref": f"#/$defs/{written}"}]}


def schema_text(schema: Schema) -> str:
    """`schema` as JSON, a value in one line where that is short."""
    return f"{_json(schema, '')}\n"


def _json(value: Any, margin: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(margin) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    inner = f"{margin}  "
    if isinstance(value, list):
        items = [_json(item, inner) for item in value]
    else:
        items = [f"{json.dumps(key)}: {_json(item, inner)}" for key, item in value.items()]
    start, end = "[]" if isinstance(value, list) else "{}"
    return f"{start}\n{inner}" + f",\n{inner}".join(items) + f"\n{margin}{end}"


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
        "schedule_type": (
            "must be a number or a schedule such as {{schedule: linear, start: 0.001, end: 0}} "
            "(got {got})"
        ),
        "reward_scale_type": "must be a number or 'running' (got {got})",
        "environment_parameter_type": "must be a number, a sampler or a curriculum (got {got})",
        "option_type": "must be a plain value, a list or a mapping (got {got})",
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
        elif error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]:
            continue  # a list is called so only because its items are wrong
        else:
            for fault in _diagnostics(error, root):
                yield fault._replace(path=without_tags(root, fault.path))


def _kind_diagnostics(error: ErrorDetails, root: type) -> Iterator[Diagnostic]:
    """The faults of a mapping that may be of several kinds and does not say which it is."""
    path, context = without_tags(root, error["loc"]), error["ctx"]
    valid = keys_at(root, error["loc"])
    key = context["discriminator"].strip("'").removesuffix("()")
    what = "is missing"
    if error["type"] != "union_tag_not_found":
        allowed = " or ".join(context["expected_tags"].rsplit(", ", 1))
        what = f"must be {allowed} (got {shown_value(error['input'][key])})"
    yield Diagnostic((*path, key), what)
    if _by_name(_at(root, error["loc"])) is not None:  # packages extend it
        return
    for other in error["input"]:
        if other not in valid:  # whose keys they are is not known
            yield Diagnostic(
                (*path, other), f"unknown key ({nearest_name(other, valid)})", about_key=True
            )


def _diagnostics(error: ErrorDetails, root: type) -> Iterator[Diagnostic]:
    """The fault of `error`; several where a class refused its values in several lines."""
    path = error["loc"]
    what = describe(error)
    if error["type"] == UNKNOWN:
        valid, key = keys_at(root, path[:-1]), str(path[-1])
        of = kind_of_another_key(root, path)
        yield Diagnostic(path, f"{what}{of} ({nearest_name(key, valid)})", about_key=True)
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
    # A list with some values, but fewer than it takes, is not empty.
    lacks_several = error["type"] == "too_short" and error["ctx"]["min_length"] > 1
    sentence = _SENTENCES.get("too_few" if lacks_several else error["type"])
    if sentence is None:
        return f"{error['msg'].lower()} (got {shown_value(error['input'])})"
    known = {  # bounds as a person writes them: 0 and not 0.0
        name: int(bound) if isinstance(bound, float) and bound.is_integer() else bound
        for name, bound in error.get("ctx", {}).items()
    }
    if error["type"] == "literal_error" and isinstance(value, str):
        listed = str(known["expected"])
        known["expected"] = allowed_names(value, re.findall("'(.*?)'", listed), listed)
    return sentence.format(got=shown_value(error["input"]), **known)


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
        if is_dataclass(_unannotated(member))
        for field in fields(_unannotated(member))
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
    kind = _unannotated(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        hint = _hints(kind).get(str(part))
        some = [member for member in _members(hint) if member is not NoneType]
        return some[0] if len(some) == 1 else hint
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


def _unannotated(kind: Any) -> Any:
    """`kind` without what it is annotated with."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _members(kind: Any) -> tuple[Any, ...]:
    plain = _unannotated(kind)
    return get_args(plain) if get_origin(plain) in (Union, UnionType) else ()


def _is_tagged(kind: Any, tag: str | int) -> bool:
    """Whether `kind` bears `tag`, or has a field that must read so."""
    if get_origin(kind) is Annotated and any(mark == Tag(str(tag)) for mark in get_args(kind)[1:]):
        return True
    plain = _unannotated(kind)
    hints = get_type_hints(plain).values() if is_dataclass(plain) else ()
    return any(get_origin(hint) is Literal and tag in get_args(hint) for hint in hints)
