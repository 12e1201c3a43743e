"""Halls as data, the rules they must obey so that every match can be won, and their files.

Discs of radius 0.5 m pass every gap of 1 m; a gap is measured along the axis in which two boxes are
farther apart, so that what a square passes a disc passes. Reachability is worked out on the
rectangles that the grown boxes' sides cut the floor into, which is exact for squares.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
from yaml.nodes import Node

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import FileTable
from aimbot_lab.foundation.yaml_files import WHOLE, FileFormat, FileReader, Source
from aimbot_lab.worlds.duel.core.state import LEVELS, MAX_BOXES, MIN_APART
from aimbot_lab.worlds.duel.settings import DuelSettings

FLOOR_SIZE = 30.0  # m, side of the floor that layouts are made for
GRAIN = 64.0  # coordinates are whole multiples of 1 / GRAIN m, so that S - x is exact
NO_FRACTION = 2.0**53  # floats beyond have none
Box = tuple[float, float, float, float]  # m: min x, min z, max x, max z
RADIUS = 0.5  # m, of the largest disc
SLACK = 1 / 128  # m, less than the grain: a gap of exactly 1 m stays open
WALLS = {
    "the left wall": (-1.0, -1.0, 0.0, FLOOR_SIZE + 1),
    "the right wall": (FLOOR_SIZE, -1.0, FLOOR_SIZE + 1, FLOOR_SIZE + 1),
    "the lower wall": (-1.0, -1.0, FLOOR_SIZE + 1, 0.0),
    "the upper wall": (-1.0, FLOOR_SIZE, FLOOR_SIZE + 1, FLOOR_SIZE + 1),
}


@dataclass(frozen=True)
class Hall:
    """What stands in a hall, in metres; of boxes the turned twin stands as well."""

    name: str
    difficulty: int  # 1 (open) to 5 (hardest)
    boxes: tuple[Box, ...]  # as written
    start: tuple[float, float]  # x and z where no drawn start fits; both look along +z there

    @cached_property
    def all_boxes(self) -> tuple[Box, ...]:
        """All boxes, twins among them; turned, the hall is the same list in the same order."""
        given = [rounded(box) for box in self.boxes]
        return tuple(sorted({*given, *(twin(box) for box in given)}))


def rounded(box: Box) -> Box:
    """`box` on the grain."""
    a, b, c, d = (side if abs(side) > NO_FRACTION else round(side * GRAIN) / GRAIN for side in box)
    return a, b, c, d


def twin(box: Box) -> Box:
    """`box` turned by half a turn about the floor's middle."""
    low_x, low_z, high_x, high_z = box
    return FLOOR_SIZE - high_x, FLOOR_SIZE - high_z, FLOOR_SIZE - low_x, FLOOR_SIZE - low_z


def layout_faults(layout: Hall) -> list[str]:
    """One line for every rule that `layout` breaks, naming it and the reason; empty if none."""
    found = list(_form_faults(layout))
    if not found:
        found = [*_gap_faults(layout), *_start_faults(layout)]
    if not found and not _all_reachable(layout):
        found = ["part of the free floor cannot be reached by a disc of radius 0.5 m"]
    return [f"layout {layout.name}: {fault}" for fault in found]


def _form_faults(layout: Hall) -> Iterator[str]:
    if layout.difficulty not in range(1, LEVELS + 1):
        yield f"difficulty {layout.difficulty} is not 1 to {LEVELS}"
    for number, box in enumerate(layout.boxes, start=1):
        low_x, low_z, high_x, high_z = rounded(box)
        name = f"box {number} ({', '.join(f'{side:g}' for side in box)})"
        if not (low_x < high_x and low_z < high_z):
            yield f"{name} has no positive size: give min x, min z, max x, max z"
        elif min(low_x, low_z) < 0 or max(high_x, high_z) > FLOOR_SIZE:
            yield f"{name} reaches beyond the floor, (0, 0) to ({FLOOR_SIZE:g}, {FLOOR_SIZE:g})"
    if len(layout.all_boxes) > MAX_BOXES:
        yield f"{len(layout.all_boxes)} boxes with their twins; at most {MAX_BOXES} are allowed"


def gap(one: Box, two: Box) -> float:
    """Metres between two boxes along the axis in which they are farther apart; 0: they touch."""
    along_x = max(one[0] - two[2], two[0] - one[2], 0.0)
    along_z = max(one[1] - two[3], two[1] - one[3], 0.0)
    return max(along_x, along_z)


def _gap_faults(layout: Hall) -> Iterator[str]:
    for one, two in combinations(layout.all_boxes, 2):
        if 0 < gap(one, two) < 2 * RADIUS:
            yield f"{_listed(one)} and {_listed(two)} are {_narrow(gap(one, two))}"
    for box in layout.all_boxes:
        for name, wall in WALLS.items():
            if 0 < gap(box, wall) < 2 * RADIUS:
                yield f"{_listed(box)} and {name} are {_narrow(gap(box, wall))}"


def _narrow(metres: float) -> str:
    return f"{metres:g} m apart: close the gap, or make it at least {2 * RADIUS:g} m"


def _listed(box: Box) -> str:
    return f"box ({', '.join(f'{side:g}' for side in box)})"


def _start_faults(layout: Hall) -> Iterator[str]:
    x, z = layout.start
    lowest, farthest = RADIUS, FLOOR_SIZE - RADIUS
    if not (lowest <= x <= farthest and lowest <= z <= (FLOOR_SIZE - MIN_APART) / 2):
        yield (
            f"start ({x:g}, {z:g}) must have x from {lowest:g} to {farthest:g} and z from "
            f"{lowest:g} to {(FLOOR_SIZE - MIN_APART) / 2:g}"
        )
        return
    for box in layout.all_boxes:
        if np.hypot(*_to_box(x, z, box)) < RADIUS:
            yield f"start ({x:g}, {z:g}) is not free of {_listed(box)}"
    if layout.difficulty > 1 and not _hidden(layout):
        yield f"start ({x:g}, {z:g}): who starts there and the opponent's start see each other"


def _to_box(x: float, z: float, box: Box) -> tuple[float, float]:
    return max(box[0] - x, x - box[2], 0.0), max(box[1] - z, z - box[3], 0.0)


def _hidden(layout: Hall) -> bool:
    """Whether a box stops each of many lines from the start to the disc of the other start."""
    start = np.array(layout.start)
    other = FLOOR_SIZE - start
    ahead = (other - start) / np.hypot(*(other - start))
    across = np.array([ahead[1], -ahead[0]])
    ends = other + np.linspace(-RADIUS, RADIUS, 33)[:, None] * across
    return all(_is_stopped(start, end, layout) for end in ends)


def _is_stopped(start: np.ndarray, end: np.ndarray, layout: Hall) -> bool:
    along = np.where(end == start, 1e-12, end - start)
    for box in layout.all_boxes:
        first = (np.array(box[:2]) - start) / along
        second = (np.array(box[2:]) - start) / along
        near, far = np.minimum(first, second).max(), np.maximum(first, second).min()
        if near <= far and far > 0 and near < 1:
            return True
    return False


def _all_reachable(layout: Hall) -> bool:
    """Whether the floor that a square of 1 m fits on is one piece."""
    grown = RADIUS - SLACK
    boxes = np.array(layout.all_boxes).reshape(-1, 4) + grown * np.array([-1, -1, 1, 1])
    sides = [
        np.unique(
            np.clip(
                [grown, FLOOR_SIZE - grown, *boxes[:, axis::2].ravel()], grown, FLOOR_SIZE - grown
            )
        )
        for axis in range(2)
    ]
    middles = [[(low + high) / 2 for low, high in pairwise(cuts)] for cuts in sides]
    x, z = np.meshgrid(*middles, indexing="ij")
    free = np.ones(x.shape, bool)
    for low_x, low_z, high_x, high_z in boxes:
        free &= ~((low_x < x) & (x < high_x) & (low_z < z) & (z < high_z))
    reached = np.zeros_like(free)
    reached.flat[int(np.argmax(free))] = True
    while True:
        wider = reached.copy()
        wider[1:] |= reached[:-1]
        wider[:-1] |= reached[1:]
        wider[:, 1:] |= reached[:, :-1]
        wider[:, :-1] |= reached[:, 1:]
        wider &= free
        if (wider == reached).all():
            return bool((reached == free).all())
        reached = wider


FORM = FileFormat(
    noun="layout",
    kept="layouts",
    head="# own layouts of the duel, kept with a run; SHA-256 of all lines below: ",
    max_bytes=2**20,
)
SHIPPED = Path(__file__).parent / "data" / "layouts.yaml"
KEYS = ("name", "start", "boxes")
DIFFICULTIES = tuple(str(level) for level in range(1, LEVELS + 1))
HEAD = ("name", "difficulty", "boxes")


class _LayoutReader(FileReader):
    """Reads one file of layouts."""

    def layouts(self) -> list[tuple[Hall, str]]:
        """The layouts without a fault, each with its place, `file:line:column`."""
        before, found = len(self.faults), []
        whole = self.fields(self.root(), WHOLE, allowed=DIFFICULTIES)
        for difficulty, listed in whole.items():
            for node in self.items(listed, difficulty):
                layout = self._layout(node, difficulty=int(difficulty))
                if layout is not None:
                    found.append((layout, self.place(node)))
        if not found and len(self.faults) == before:
            self.faults.append(f"{self.path}:1:1: the file holds no layout")
        return found

    def _layout(self, node: Node, *, difficulty: int) -> Hall | None:
        """The layout at `node`, or None where it has a fault."""
        before = len(self.faults)
        fields = self.fields(node, "layout", allowed=KEYS, required=KEYS[:2])
        name = self.name(fields.get("name"), "layout")
        label = f"layout {name}"
        start = self.numbers(fields.get("start"), f"{label}: start", count=2)
        boxes = self.points(fields.get("boxes"), f"{label}: boxes", count=4)
        if len(self.faults) > before:
            return None
        layout = Hall(
            name=name,
            difficulty=difficulty,
            boxes=tuple((box[0], box[1], box[2], box[3]) for box in boxes),
            start=(start[0], start[1]),
        )
        for fault in layout_faults(layout):
            self.fault(node, fault)
        return layout if len(self.faults) == before else None


def load_layouts(files: Sequence[Source]) -> tuple[Hall, ...]:
    """The layouts of `files`, sorted by difficulty.

    Raises ConfigurationError with every fault of every file, each `file:line:column: what`: two
    of one name and difficulties without a layout among them.
    """
    faults: list[str] = []
    places: dict[str, str] = {}
    layouts: list[Hall] = []
    for path in files:
        reader = _LayoutReader(path, faults, form=FORM, is_shipped=path == SHIPPED)
        for layout, place in reader.layouts():
            if layout.name in places:
                reason = f"another has this name, at {places[layout.name]}"
                faults.append(f"{place}: layout {layout.name}: {reason}")
            places.setdefault(layout.name, place)
            layouts.append(layout)
    if faults:
        raise ConfigurationError(*faults)
    return tuple(sorted(layouts, key=lambda layout: layout.difficulty))


@cache
def shipped_layouts() -> tuple[Hall, ...]:
    """The layouts of this package, at least four of each difficulty."""
    layouts = load_layouts([SHIPPED])
    assert {layout.difficulty for layout in layouts} == set(range(1, LEVELS + 1))
    return layouts


def chosen_layouts(settings: DuelSettings) -> tuple[Hall, ...]:
    """The shipped layouts, where they are wanted, and those that `settings` name.

    Raises ConfigurationError for every fault of their files, and for a difficulty without any.
    """
    if not settings.layouts and settings.shipped_layouts:
        return shipped_layouts()
    shipped = (SHIPPED,) if settings.shipped_layouts else ()
    found = load_layouts([*shipped, *FORM.sources(settings.layouts)])
    fault = lacking_fault(settings, found)
    if fault is not None:
        raise ConfigurationError(fault)
    return found


def lacking_fault(settings: DuelSettings, layouts: Sequence[Hall] | None = None) -> str | None:
    """Which difficulties have no layout under `settings`; None where each has one."""
    if settings.shipped_layouts:
        return None
    found = load_layouts(FORM.sources(settings.layouts)) if layouts is None else layouts
    there = {layout.difficulty for layout in found}
    lacking = [str(level) for level in range(1, LEVELS + 1) if level not in there]
    if not lacking:
        return None
    where = "env.shipped_layouts is false, and env.layouts holds none"
    return f"no layout of difficulty {', '.join(lacking)} is there: {where}"


def kept_layouts(entries: Sequence[Path | str]) -> str:
    """A layout file, as text, with all that the `entries` of `env.layouts` hold.

    The text of such a text is the same. Raises ConfigurationError with every fault of every file,
    a name that a shipped layout has among them.
    """
    files = FORM.sources(entries)
    shipped = {layout.name for layout in shipped_layouts()}
    own = [one for one in load_layouts([SHIPPED, *files]) if one.name not in shipped]
    return FORM.joined(_lines(own), files)


def _lines(layouts: Sequence[Hall]) -> Iterator[str]:
    for level in range(1, LEVELS + 1):
        own = [layout for layout in layouts if layout.difficulty == level]
        if own:
            yield f"{level}:"
        for one in own:
            fields = {"name": one.name, "start": one.start, "boxes": one.boxes}
            yield f"  - {json.dumps(fields, ensure_ascii=False)}"


def listed_layouts(paths: Sequence[Path]) -> FileTable:
    """The layouts of `paths`, or the shipped ones, one a row."""
    rows = tuple((one.name, one.difficulty, len(one.all_boxes)) for one in layouts_of(paths))
    return FileTable(HEAD, rows, tuple(dict(zip(HEAD, row, strict=True)) for row in rows))


def layout_count(paths: Sequence[Path]) -> int:
    """How many layouts `paths` hold, none of which has the name of another or a shipped one."""
    if not paths:
        return len(shipped_layouts())
    return len(load_layouts([SHIPPED, *FORM.sources(paths)])) - len(shipped_layouts())


def layouts_of(paths: Sequence[Path]) -> tuple[Hall, ...]:
    """The layouts of files and folders, or the shipped ones."""
    return load_layouts(FORM.sources(paths)) if paths else shipped_layouts()
