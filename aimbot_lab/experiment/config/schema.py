"""JSON Schemas of the files that a user writes, made from the classes that validate them.

An editor completes and checks with them. They accept every file that is fit to run, and refuse
what is wrong in form; what hangs together between keys, only the check sees. The words under the
fields of the classes become the descriptions.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

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
    for fields in (kind.get("properties", {}) for kind in definitions.values()):
        for name in usual.keys() & fields.keys() if "algo" in fields else ():
            fields[name].setdefault("description", usual[name].get("description", ""))


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
    plain: Schema = {
        _BOUNDS.get(key, key): _plain_properties(value) if key == "properties" else _plain(value)
        for key, value in node.items()
        if key not in _NOISE
    }
    items = plain.pop("prefixItems", None)
    if items:
        assert all(item == items[0] for item in items), "a tuple of several kinds"
        plain["items"] = items[0]
    return plain


def _plain_properties(properties: Schema) -> Schema:
    return {name: _plain(kind) for name, kind in properties.items()}


def _close(definitions: Schema, root: Schema) -> None:
    """Say what the classes check in code: which targets and parameters there are, and bounds."""
    criteria = definitions.get("CompletionCriteria")
    if criteria is not None:
        unbounded = {"enum": ["reward", "elo"]}
        reward = {"properties": {"measure": unbounded}, "required": ["measure"]}
        share = {"properties": {"threshold": {"minimum": 0, "exclusiveMaximum": 1}}}
        criteria.update({"if": reward, "else": share})
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
