"""Maps: where obstacles, start, end and treasure sites of a game are, and the files of maps.

And the ways that a map must have, so that every game on it can be won.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.files import is_there
from aimbot_lab.foundation.world_type import FileTable
from aimbot_lab.foundation.yaml_files import (
    START,
    FileFormat,
    FileReader,
    FileText,
    Position,
    Source,
    kind_of,
    name_of,
    place_of,
)

SIZE = 64  # cells each way
MAX_SITES = 10
MIN_STEPS = 8  # from start to end

GridCell = tuple[int, int]  # (x, z)


@dataclass(frozen=True, eq=False)
class GorgeMap:
    """A map on which games are played; its arrays are read-only.

    A cell is (x, z), x to the right, z up, (0, 0) the bottom left corner. Two maps are equal where
    their names and contents are.
    """

    name: str
    walls: npt.NDArray[np.bool_]  # [64, 64] by [x, z]: True where there is an obstacle
    start: tuple[int, int]  # (x, z)
    end: tuple[int, int]  # (x, z)
    sites: npt.NDArray[np.int64]  # [S, 2] x, z of the treasure sites by config_id, 1 <= S <= 10
    points: npt.NDArray[np.float64]  # [S] what a treasure on each site is worth

    def __post_init__(self) -> None:
        for array in (self.walls, self.sites, self.points):
            array.setflags(write=False)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the content, not of the name: 64 hex digits."""
        digest = hashlib.sha256(np.packbits(self.walls).tobytes())
        for numbers in ([*self.start, *self.end], self.sites, self.points):
            digest.update(np.asarray(numbers, "<f8").tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Whether `other` is a map of the same name and content."""
        if not isinstance(other, GorgeMap):
            return NotImplemented
        return (self.name, self.content_hash) == (other.name, other.content_hash)

    def __hash__(self) -> int:
        """Equal for equal maps."""
        return hash((self.name, self.content_hash))


def distances(
    grid: GorgeMap, target: GridCell, *, through_end: bool = False
) -> npt.NDArray[np.int32]:
    """Steps [64, 64] by [x, z] of the shortest way from each cell to `target`; -1: no way.

    The game is over at the end, so that no way leads through it, unless `through_end`.
    """
    closed = None if through_end or target == grid.end else grid.end
    return steps_to(target, grid.walls, closed=closed)


def steps_to(
    target: GridCell, walls: npt.NDArray[np.bool_], *, closed: GridCell | None
) -> npt.NDArray[np.int32]:
    """As `distances`, on `walls` [W, H] alone; `closed` is a cell that counts as one of them."""
    from aimbot_lab.worlds.gorge.core.optimum import NO_CELL, fill_distances  # loads numba

    width, height = walls.shape
    closed_cell = NO_CELL if closed is None else height * closed[0] + closed[1]
    found = np.empty((width, height), np.int32)
    scratch = np.empty(width * height, np.int32)
    fill_distances(walls, height * target[0] + target[1], closed_cell, scratch, found)
    return found


def broken_rules(grid: GorgeMap) -> list[tuple[GridCell, str]]:
    """Every rule that the map breaks, after the cell to blame.

    Road that can't be reached is allowed.
    """
    from_start, steps = distances(grid, grid.start), shortest_way(grid)
    broken: list[tuple[GridCell, str]] = [
        ((x, z), f"site {number} at ({x}, {z}) can't be reached from the start without the end")
        for number, (x, z) in enumerate(grid.sites.tolist())
        if from_start[x, z] < 0
    ]
    if steps < 0:
        broken.append((grid.end, "the end can't be reached"))
    elif steps < MIN_STEPS:
        what = f"start and end must be {MIN_STEPS} steps apart (got {steps})"
        broken.append((grid.end, what))
    return broken


def shortest_way(grid: GorgeMap) -> int:
    """Steps from start to end; -1: no way."""
    return int(distances(grid, grid.end)[grid.start])


FORM = FileFormat(
    noun="map",
    kept="map",
    head="# a map, kept with a run; SHA-256 of all lines below: ",
    max_bytes=2**16,
    own="map",
)
FOLDER = Path(__file__).parent / "data"
SHIPPED_FILES = tuple(sorted(FOLDER.glob("*.yaml")))
SHIPPED = tuple(path.stem for path in SHIPPED_FILES)
KEYS = ("name", "points", "rows")
MAX_POINTS = 1000
OBSTACLE, ROAD, BEGIN, END = "#.SE"
DIGITS = "0123456789"
ALLOWED = {OBSTACLE, ROAD, BEGIN, END, *DIGITS}
HEAD = ("name", "start", "end", "shortest way", "obstacles", "sites", "points", "hash")
HASH_DIGITS = 6  # that a table shows


def load_map(entry: str | Path) -> GorgeMap:
    """The map that `entry` names: a shipped one, a file, or the text that a run keeps of one.

    Raises ConfigurationError with every fault of the file, each `file:line:column: what`; where
    there is no such map without a place.
    """
    source: Source = FOLDER / f"{entry}.yaml" if str(entry) in SHIPPED else FORM.source(entry)
    if not isinstance(source, FileText) and not (str(entry) and is_there(source)):
        name = str(entry)[:200]
        name = name if name.isprintable() and name else ascii(name)
        known = ", ".join(SHIPPED)
        raise ConfigurationError(f"no shipped map and no file {name} (shipped: {known})")
    faults: list[str] = []
    grid = _MapReader(source, faults, form=FORM, is_shipped=source in SHIPPED_FILES).map()
    if grid is None:
        raise ConfigurationError(*faults)
    return grid


class _MapReader(FileReader):
    """Reads the file of one map."""

    def map(self) -> GorgeMap | None:
        """The map; None where the file has a fault."""
        root = self.root()
        if self.faults:
            return None
        if not isinstance(root, MappingNode):
            got, place = ("nothing", START) if root is None else (kind_of(root), place_of(root))
            what = f"the file must be a mapping of {', '.join(KEYS)} (got {got})"
            self.fault_at(place, what)
            return None
        fields = self.fields(root, "", allowed=KEYS, required=KEYS)
        name = self.name(fields.get("name"), "")
        rows = self._rows(fields.get("rows"))
        points = self._points(fields.get("points"), sites=_site_count(rows))
        if self.faults:
            return None
        grid = _map_of_rows(rows, name=name, points=points)
        for (x, z), reason in broken_rules(grid):
            place = self._place_in(fields["rows"], SIZE - 1 - z, x)
            self.fault_at(place, f"map {name}: {reason}")
        return None if self.faults else grid

    def _rows(self, node: Node | None) -> Sequence[str]:
        """The lines of the grid; empty where they have a fault."""
        if node is None:
            return ()
        if not isinstance(node, ScalarNode):
            self.fault(node, f"rows: must be text of 64 lines (got {kind_of(node)})")
            return ()
        rows = node.value.removesuffix("\n").split("\n")
        faults = list(_shape_faults(rows)) or list(_mark_faults(rows))
        for line, column, reason in faults:
            self.fault_at(self._place_in(node, line, column), f"rows: {reason}")
        return () if faults else rows

    def _points(self, node: Node | None, *, sites: int) -> Sequence[int]:
        """What each treasure is worth; `sites` of them, unless that is 0 and not known."""
        items = self.items(node, "points")
        if isinstance(node, SequenceNode) and sites and len(items) != sites:
            wanted = f"{sites} number{'' if sites == 1 else 's'}"
            what = f"must hold {wanted}, one for each site (got {len(items)})"
            self.fault(node, f"points: {what}")
        return [
            self.whole(item, f"points.{k}", most=MAX_POINTS) or 0 for k, item in enumerate(items)
        ]

    def _place_in(self, node: Node, line: int, column: int) -> Position:
        """The place of a character of the text at `node`; the node's where it can't be told."""
        start = place_of(node)
        if line < 0 or not isinstance(node, ScalarNode) or node.style != "|":
            return start
        number, lines = start.line + line, self.text.splitlines()  # the text begins a line later
        if number >= len(lines):
            return start
        indent = len(lines[number]) - len(node.value.split("\n")[line])
        return Position(number + 1, max(indent, 0) + column + 1)


RowsFault = tuple[int, int, str]
"""Line and column of what is wrong, both counted from 0 (-1: with all rows), and what it is."""


def rows_of(grid: GorgeMap) -> tuple[str, ...]:
    """The lines of `grid`."""
    signs = np.where(grid.walls, OBSTACLE, ROAD)
    signs[grid.start], signs[grid.end] = BEGIN, END
    for number, (x, z) in enumerate(grid.sites):
        signs[x, z] = DIGITS[number]
    return tuple("".join(line) for line in signs.T[::-1])


def _site_count(rows: Sequence[str]) -> int:
    """How many treasure sites `rows` hold."""
    return sum(line.count(digit) for line in rows for digit in DIGITS)


def _map_of_rows(rows: Sequence[str], *, name: str, points: Sequence[float]) -> GorgeMap:
    """The map of `rows` without a fault."""
    signs = np.array([list(line) for line in rows])[::-1].T  # [x, z]
    return GorgeMap(
        name=name,
        walls=np.ascontiguousarray(signs == OBSTACLE),
        start=_cell_of(signs, BEGIN),
        end=_cell_of(signs, END),
        sites=np.array([_cell_of(signs, DIGITS[k]) for k in range(_site_count(rows))], np.int64),
        points=np.array(points, np.float64),
    )


def _cell_of(signs: "np.ndarray[tuple[int, ...], np.dtype[np.str_]]", sign: str) -> tuple[int, int]:
    (x, z), *_ = np.argwhere(signs == sign).tolist()
    return x, z


def _shape_faults(rows: Sequence[str]) -> Iterator[RowsFault]:
    if len(rows) != SIZE:
        yield -1, -1, f"must hold {SIZE} lines (got {len(rows)})"
    for number, line in enumerate(rows[:SIZE]):
        where = f"line {number + 1}"
        if len(line) != SIZE:
            what = f"{where} must have {SIZE} characters (got {len(line)})"
            yield number, min(len(line), SIZE), what
        wrong = next((k for k, sign in enumerate(line) if sign not in ALLOWED), None)
        if wrong is not None:
            what = (
                f"{where}, character {wrong + 1} is {line[wrong]!a}; allowed are # . S E and 0 to 9"
            )
            yield number, wrong, what


def _mark_faults(rows: Sequence[str]) -> Iterator[RowsFault]:
    counts = Counter("".join(rows))
    for mark in (BEGIN, END):
        if counts[mark] != 1:
            yield (*_last_of(rows, mark), f"must hold one {mark} (got {counts[mark]})")
    last = max((k for k in range(MAX_SITES) if counts[DIGITS[k]]), default=-1)
    if last < 0:
        yield -1, -1, "must hold a site at least: site 0 is missing"
    for number in range(last + 1):
        found = counts[DIGITS[number]]
        if found == 0:
            yield (*_last_of(rows, DIGITS[last]), f"site {number} is missing (there is a {last})")
        elif found > 1:
            often = "twice" if found == 2 else f"{found} times"
            what = f"site {number} is there {often}"
            yield (*_last_of(rows, DIGITS[number]), what)


def _last_of(rows: Sequence[str], sign: str) -> tuple[int, int]:
    """Line and column of the last `sign`; -1 and -1 where there is none."""
    line = max((k for k, row in enumerate(rows) if sign in row), default=-1)
    return (line, rows[line].rindex(sign)) if line >= 0 else (-1, -1)


def map_text(grid: GorgeMap) -> str:
    """The file of `grid`, which reads back as the same map."""
    points = ", ".join(f"{value:.0f}" for value in grid.points)
    rows = "".join(f"  {line}\n" for line in rows_of(grid))
    name = json.dumps(grid.name, ensure_ascii=False)
    return f"name: {name}\npoints: [{points}]\nrows: |\n{rows}"


def kept_map(entry: str | Path) -> str:
    """The map that `entry` names as text, from which a run repeats; of that text the same.

    Raises ConfigurationError with every fault of the file.
    """
    return FORM.with_hash(map_text(load_map(entry)))


def listed_maps(paths: Sequence[Path]) -> FileTable:
    """The maps of `paths`, or the shipped ones, one a row."""
    documents = tuple(map(_document, maps_of(paths)))
    return FileTable(HEAD, tuple(map(_row, documents)), documents)


def _document(grid: GorgeMap) -> dict[str, Any]:
    return {
        "name": grid.name,
        "start": list(grid.start),
        "end": list(grid.end),
        "shortest_way": shortest_way(grid),
        "obstacle_share": float(grid.walls.mean()),
        "sites": grid.sites.tolist(),
        "points": grid.points.tolist(),
        "hash": grid.content_hash,
    }


def _row(document: Mapping[str, Any]) -> tuple[str | int, ...]:
    return (
        document["name"],
        "{}, {}".format(*document["start"]),
        "{}, {}".format(*document["end"]),
        f"{document['shortest_way']} steps",
        f"{100 * document['obstacle_share']:.1f} %",
        len(document["sites"]),
        f"{sum(document['points']):g}",
        document["hash"][:HASH_DIGITS],
    )


def maps_of(paths: Sequence[Path]) -> list[GorgeMap]:
    """The maps of files and folders. Raises ConfigurationError with every fault of every file."""
    faults: list[str] = []
    found: list[GorgeMap] = []
    for path in FORM.sources(paths) if paths else SHIPPED_FILES:
        try:
            found.append(load_map(name_of(path)))
        except ConfigurationError as error:
            faults += error.faults
    if faults:
        raise ConfigurationError(*faults)
    return found
