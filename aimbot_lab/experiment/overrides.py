"""`--set KEY=VALUE`: which keys it gives which values."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from aimbot_lab.experiment.paths import Path
from aimbot_lab.experiment.tree import read_tree

FORM = "must be KEY=VALUE with a KEY such as train.total_steps or lessons.0.name"


class Override(NamedTuple):
    """One `--set` as it was written, and the values it gives; a mapping gives several."""

    text: str
    values: tuple[tuple[Path, Any], ...]


def parse_override(text: str, data: object) -> Override:
    """What `text` sets in `data`, whose lists take numbers as keys.

    Raises ValueError with what is wrong.
    """
    key, separator, value = text.partition("=")
    parts = re.sub(r"\[(\d+)\]", r".\1", key.strip()).split(".")
    if not separator or not all(re.fullmatch(r"[\w-]+", part) for part in parts):
        raise ValueError(FORM)
    tree = read_tree(value)
    if tree.faults:
        raise ValueError(f"the value: {tree.faults[0].what}")
    values = tuple((_path(leaf, data), value) for leaf, value in _leaves(parts, tree.data))
    return Override(text, values)


def _leaves(parts: list[str], value: Any) -> Iterator[tuple[list[str], Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves([*parts, key], inner)
    else:
        yield parts, value


def _path(parts: list[str], data: Any) -> Path:
    path: Path = ()
    for number, part in enumerate(parts):
        if len(path) == 3 and path[0] == "lessons" and path[2] == "parameters":
            return (*path, ".".join(parts[number:]))
        if isinstance(data, list):
            key: str | int = _place(part, length=len(data), within=".".join(parts[:number]))
            data = data[int(key)]
        else:
            key = part
            data = data.get(part) if isinstance(data, dict) else None
        path = (*path, key)
    return path


def _place(part: str, *, length: int, within: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", part) or int(part) >= length:
        raise ValueError(
            f"{within} is a list of {length}, so {part} must be a number below {length}"
        )
    return int(part)
