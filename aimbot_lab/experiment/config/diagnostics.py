"""What is wrong with a file, at which key, and the line in which a user reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from aimbot_lab.foundation.shown_text import MAX_LINE, one_line, shortened
from aimbot_lab.foundation.yaml_files import Position

KeyPath = tuple[str | int, ...]

MAX_KEY = 80  # characters of a key that a fault repeats
MAX_OVERRIDE = 200  # characters of a `--set` that a fault repeats


class Diagnostic(NamedTuple):
    """What is wrong at a key; `position` is given where the key's own place is not the one."""

    path: KeyPath
    what: str
    position: Position | None = None
    about_key: bool = False  # the key itself is wrong, not its value


@dataclass(frozen=True)
class Origins:
    """Where each key's value came from: a place in the file or a `--set`."""

    file: str
    keys: Mapping[KeyPath, Position] = field(default_factory=dict)
    values: Mapping[KeyPath, Position] = field(default_factory=dict)
    overrides: Sequence[tuple[KeyPath, str]] = ()  # path and KEY=VALUE, in the order of application

    def lines(self, faults: Sequence[Diagnostic]) -> list[str]:
        """One line for each of `faults`, in the order of the file, overrides last."""
        placed = sorted({self._placed(fault) for fault in faults})
        return [shortened(one_line(text), MAX_LINE) for _, text in placed]

    def _placed(self, fault: Diagnostic) -> tuple[tuple[int, ...], str]:
        text = f"{shown_path(fault.path)}: {fault.what}" if fault.path else fault.what
        number = None if fault.position else self._override(fault.path)
        if number is not None:
            return (
                1,
                number,
                0,
            ), f"--set {shortened(self.overrides[number][1], MAX_OVERRIDE)}: {text}"
        position = fault.position or self._position(fault)
        return (0, *position), f"{self.file}:{position.line}:{position.column}: {text}"

    def _override(self, path: KeyPath) -> int | None:
        numbers = range(len(self.overrides) - 1, -1, -1)
        above = (i for i in numbers if starts_with(path, self.overrides[i][0]))
        below = (i for i in numbers if starts_with(self.overrides[i][0], path))
        return next(above, next(below, None) if path else None)

    def _position(self, fault: Diagnostic) -> Position:
        if fault.about_key and fault.path in self.keys:
            return self.keys[fault.path]
        ancestors = (fault.path[:length] for length in range(len(fault.path), -1, -1))
        return next(
            (self.values[path] for path in ancestors if path in self.values), Position(1, 1)
        )


def shown_path(path: KeyPath) -> str:
    """The dotted form of `path`, as `--set` takes it; very long keys are shortened."""
    return ".".join(shortened(str(key), MAX_KEY) for key in path)


def starts_with(path: KeyPath, beginning: Sequence[str | int]) -> bool:
    """Whether `path` is `beginning` or lies under it."""
    return path[: len(beginning)] == tuple(beginning)


def is_parameters(path: KeyPath) -> bool:
    """Whether `path` leads to the environment parameters of a lesson, or of all lessons."""
    return path == ("environment_parameters",) or (
        len(path) == 3 and path[0] == "lessons" and path[2] == "parameters"
    )


def shown_value(value: object) -> str:
    """A short form of `value` for a message, in the words of YAML."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]} ..."
