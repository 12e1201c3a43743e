"""`--set KEY=VALUE`: which keys it gives which values."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from aimbot_lab.experiment.config.key_path import KeyPath, is_parameters, shown_path
from aimbot_lab.experiment.config.yaml_reader import read_yaml
from aimbot_lab.worlds.registry import default_type

ONE_VALUE = frozenset({"sampler_type", "schedule"})
FORM = "must be KEY=VALUE with a KEY such as train.total_steps or lessons.0.name"


class Override(NamedTuple):
    """One `--set` as it was written, and the values it gives.

    A mapping gives several, but a sampler or a schedule is one value: the keys of two kinds do
    not mix.
    """

    text: str
    values: tuple[tuple[KeyPath, Any], ...]


def parse_override(text: str, data: object) -> Override:
    """What `text` sets in `data`, whose lists take numbers as keys.

    Raises ValueError with what is wrong.
    """
    key, separator, value = text.partition("=")
    parts = re.sub(r"\[(\d+)\]", r".\1", key.strip()).split(".")
    if not separator or not all(re.fullmatch(r"[\w-]+", part) for part in parts):
        raise ValueError(FORM)
    document = read_yaml(value)
    if document.faults:
        raise ValueError(f"the value: {document.faults[0].what}")
    values = tuple((_path(leaf, data), value) for leaf, value in _leaves(parts, document.data))
    return Override(text, values)


def _leaves(parts: list[str], value: Any) -> Iterator[tuple[list[str], Any]]:
    if isinstance(value, dict) and value and not ONE_VALUE & value.keys():
        for key, inner in value.items():
            yield from _leaves([*parts, key], inner)
    else:
        yield parts, value


def _path(parts: list[str], data: Any) -> KeyPath:
    path: KeyPath = ()
    while parts:
        length = _name_length(parts) if is_parameters(path) else 1
        part, parts = ".".join(parts[:length]), parts[length:]
        if isinstance(data, list):
            key: str | int = _place(part, length=len(data), within=shown_path(path))
            data = data[int(key)]
        else:
            key = part
            data = data.get(part) if isinstance(data, dict) else None
        path = (*path, key)
    return path


def _name_length(parts: list[str]) -> int:
    """How many of `parts` make the name of an environment parameter, such as rewards.win."""
    known = default_type().parameters(None) or {}
    lengths = range(1, len(parts) + 1)
    return next((end for end in lengths if ".".join(parts[:end]) in known), len(parts))


def _place(part: str, *, length: int, within: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", part) or int(part) >= length:
        raise ValueError(
            f"{within} is a list of {length}, so {part} must be a number below {length}"
        )
    return int(part)
