"""Paths of keys in a curriculum file, and the text in which a user sees them."""

from collections.abc import Sequence

from aimbot_lab.foundation.shown_text import is_seen, one_line, shortened

__all__ = [
    "KeyPath",
    "is_parameters",
    "is_seen",
    "one_line",
    "shown_path",
    "shown_value",
    "starts_with",
]

KeyPath = tuple[str | int, ...]

MAX_KEY = 80  # characters of a key that a fault repeats


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
