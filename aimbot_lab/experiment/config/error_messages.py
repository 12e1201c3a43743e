"""What pydantic found, in the words of a person who writes YAML."""

from collections.abc import Mapping
from types import MappingProxyType

from pydantic_core import ErrorDetails

from aimbot_lab.experiment.config.key_path import shown_value

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


def describe(error: ErrorDetails) -> str:
    """What was wrong and what is allowed."""
    value = error["input"]
    if error["type"] == "literal_error" and isinstance(value, str) and value in _RENAMED:
        return f"{value} is called {_RENAMED[value]} now"
    sentence = _SENTENCES.get(_kind(error))
    if sentence is None:
        return f"{error['msg'].lower()} (got {shown_value(error['input'])})"
    known = {name: _plain(value) for name, value in error.get("ctx", {}).items()}
    return sentence.format(got=shown_value(error["input"]), **known)


def _plain(value: object) -> object:
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
