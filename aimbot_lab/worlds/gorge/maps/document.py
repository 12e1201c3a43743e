"""A map's YAML tree as a map, with every fault and its place in the text."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from aimbot_lab.foundation.yaml_nodes import Position, position_of
from aimbot_lab.worlds.gorge.maps.check import broken_rules
from aimbot_lab.worlds.gorge.maps.grid import GorgeMap
from aimbot_lab.worlds.gorge.maps.rows import (
    map_of_rows,
    place_in_rows,
    rows_faults,
    site_count,
)

KEYS = ("name", "points", "rows")
MAX_NAME_LENGTH = 60
MAX_POINTS = 1000
MAX_SHOWN = 40  # characters of a wrong value that a fault repeats


class Fault(NamedTuple):
    """What is wrong, and where."""

    position: Position
    text: str


class MapDocument:
    """Reads one tree and notes everything that is wrong with it in `faults`."""

    def __init__(self, root: Node | None, text: str) -> None:
        self.faults: list[Fault] = []
        self._root = root
        self._lines = text.splitlines()

    def read(self) -> GorgeMap | None:
        """The map; None where it has a fault."""
        fields = self._fields()
        name = self._name(fields.get("name"))
        rows = self._rows(fields.get("rows"))
        points = self._points(fields.get("points"), sites=site_count(rows))
        if self.faults or self._root is None:
            return None
        grid = map_of_rows(rows, name=name, points=points)
        for rule in broken_rules(grid):
            position = self._place_in(fields["rows"], *place_in_rows(rule.cell))
            self.faults.append(Fault(position, f"map {name}: {rule.reason}"))
        return None if self.faults else grid

    def _fields(self) -> dict[str, Node]:
        """The values by key."""
        found: dict[str, Node] = {}
        if not isinstance(self._root, MappingNode):
            got = "nothing" if self._root is None else _kind(self._root)
            what = f"the file must be a mapping of {', '.join(KEYS)} (got {got})"
            self.faults.append(Fault(_start(self._root), what))
            return found
        for key, value in self._root.value:
            if not isinstance(key, ScalarNode) or key.value not in KEYS:
                self._fault(key, f"unknown key {_shown(key)}, {_advice(key)}")
            elif key.value in found:
                self._fault(key, f"{key.value} is given twice")
            else:
                found[key.value] = value
        for key in KEYS:
            if key not in found:
                self._fault(self._root, f"{key} is missing")
        return found

    def _name(self, node: Node | None) -> str:
        """The name at `node`, one short line that can be printed."""
        name = node.value if isinstance(node, ScalarNode) else ""
        fits = name.strip() and name.isprintable() and len(name) <= MAX_NAME_LENGTH
        if node is not None and not fits:
            wanted = f"must be text of 1 to {MAX_NAME_LENGTH} printable characters"
            self._fault(node, f"name: {wanted} (got {_shown(node)})")
        return str(name)

    def _rows(self, node: Node | None) -> Sequence[str]:
        """The lines of the grid; empty where they have a fault."""
        if node is None:
            return ()
        if not isinstance(node, ScalarNode):
            self._fault(node, f"rows: must be text of 64 lines (got {_kind(node)})")
            return ()
        rows = node.value.removesuffix("\n").split("\n")
        faults = rows_faults(rows)
        for line, column, reason in faults:
            self.faults.append(Fault(self._place_in(node, line, column), f"rows: {reason}"))
        return () if faults else rows

    def _points(self, node: Node | None, *, sites: int) -> Sequence[int]:
        """What each treasure is worth; `sites` of them, unless that is 0 and not known."""
        if node is None:
            return ()
        if not isinstance(node, SequenceNode):
            self._fault(node, f"points: must be a list (got {_shown(node)})")
            return ()
        if sites and len(node.value) != sites:
            what = f"must hold {_numbers(sites)}, one for each site (got {len(node.value)})"
            self._fault(node, f"points: {what}")
        return [self._whole(item, f"points.{k}") for k, item in enumerate(node.value)]

    def _whole(self, node: Node, where: str) -> int:
        """The whole number at `node`; 0 where there is none."""
        text = node.value if isinstance(node, ScalarNode) and not node.style else ""
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else -1
        if not 0 <= value <= MAX_POINTS:
            wanted = f"must be a whole number from 0 to {MAX_POINTS}"
            self._fault(node, f"{where}: {wanted} (got {_shown(node)})")
        return max(value, 0)

    def _fault(self, node: Node, text: str) -> None:
        self.faults.append(Fault(_start(node), text))

    def _place_in(self, node: Node, line: int, column: int) -> Position:
        """The place of a character of the text at `node`; the node's where it can't be told."""
        start = _start(node)
        if line < 0 or not isinstance(node, ScalarNode) or node.style != "|":
            return start
        number = start.line + line  # from 0: the text begins on the next line
        if number >= len(self._lines):
            return start
        written = self._lines[number]
        indent = len(written) - len(node.value.split("\n")[line])
        return Position(number + 1, max(indent, 0) + column + 1)


def _start(node: Node | None) -> Position:
    return Position(1, 1) if node is None else position_of(node.start_mark)


def _numbers(count: int) -> str:
    return f"{count} number{'' if count == 1 else 's'}"


def _kind(node: Node) -> str:
    """What a node is that should be another; of a text nothing is repeated: it may be anyone's."""
    if isinstance(node, ScalarNode):
        return "text"
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def _shown(node: Node) -> str:
    """A wrong value in the words of a fault: one short printable line."""
    if isinstance(node, ScalarNode):
        return ascii(node.value[:MAX_SHOWN]) if node.value else "nothing"
    return _kind(node)


def _advice(key: Node) -> str:
    text = key.value if isinstance(key, ScalarNode) else ""
    guess = "".join(f"did you mean {name}? " for name in get_close_matches(text, KEYS, n=1))
    return f"{guess}allowed: {', '.join(KEYS)}"
