"""Paths of keys in a curriculum file, and the text in which a user sees them."""

import unicodedata
from collections.abc import Sequence

Path = tuple[str | int, ...]

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # Unicode categories


def shown_path(path: Path) -> str:
    """The dotted form of `path`, as `--set` takes it."""
    return ".".join(map(str, path))


def starts_with(path: Path, beginning: Sequence[str | int]) -> bool:
    """Whether `path` is `beginning` or lies under it."""
    return path[: len(beginning)] == tuple(beginning)


def is_parameters(path: Path) -> bool:
    """Whether `path` leads to the environment parameters of a lesson, or of all lessons."""
    return path == ("environment_parameters",) or (
        len(path) == 3 and path[0] == "lessons" and path[2] == "parameters"
    )


def is_seen(text: str) -> bool:
    """Whether `text` consists of visible characters and spaces on one line."""
    if text.isascii():
        return text.isprintable()
    return not any(unicodedata.category(character) in _UNSEEN for character in text)


def one_line(text: str) -> str:
    """`text` with everything that is no visible character on one line escaped."""
    if is_seen(text):
        return text
    return "".join(
        character if is_seen(character) else character.encode("unicode_escape").decode("ascii")
        for character in text
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
