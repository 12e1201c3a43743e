"""YAML text as nodes with positions: the one reader below curricula, sweeps and target presets.

Nodes keep the place of every key and value. What scalars mean, and the words of an error, are the
caller's.
"""

from typing import Any, NamedTuple

import yaml


class Position(NamedTuple):
    """A place in a text, both counted from 1."""

    line: int
    column: int


class TooDeepError(ValueError):
    """Lists or mappings nested deeper than allowed."""

    def __init__(self, max_levels: int, position: Position) -> None:
        super().__init__(f"is nested deeper than {max_levels} levels")
        self.position = position


class NodeLoader(yaml.SafeLoader):
    """Composes nodes; refuses deep nesting at once, before Python's own stack gives way.

    PyYAML alone takes a second per 1,000 levels, and libyaml's parser crashes.
    """

    max_levels = 40
    levels = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node. Raises TooDeepError."""
        self.levels += 1
        if self.levels > self.max_levels:
            event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
            raise TooDeepError(self.max_levels, position_of(event.start_mark))
        node = super().compose_node(parent, index)
        self.levels -= 1
        return node


def position_of(mark: Any) -> Position:
    """The position of PyYAML's `mark`; of None the beginning of the text."""
    return Position(1, 1) if mark is None else Position(mark.line + 1, mark.column + 1)


def position_after(text: str) -> Position:
    """The position of what follows `text`, the beginning of a file."""
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))
