"""A hall as data, and the rules it must obey so that every match can be won.

Discs of radius 0.5 m pass every gap of 1 m; a gap is measured along the axis in which two boxes are
farther apart, so that what a square passes a disc passes. Reachability is worked out on the
rectangles that the grown boxes' sides cut the floor into, which is exact for squares.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from aimbot_lab.worlds.duel.core.state import LEVELS, MAX_BOXES, MIN_APART

FLOOR_SIZE = 30.0  # m, side of the floor that layouts are made for
GRAIN = 64.0  # coordinates are whole multiples of 1 / GRAIN m, so that S - x is exact
WHOLE = 2.0**53  # floats beyond have no fraction
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
class Layout:
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
    a, b, c, d = (side if abs(side) > WHOLE else round(side * GRAIN) / GRAIN for side in box)
    return a, b, c, d


def twin(box: Box) -> Box:
    """`box` turned by half a turn about the floor's middle."""
    low_x, low_z, high_x, high_z = box
    return FLOOR_SIZE - high_x, FLOOR_SIZE - high_z, FLOOR_SIZE - low_x, FLOOR_SIZE - low_z


def layout_faults(layout: Layout) -> list[str]:
    """One line for every rule that `layout` breaks, naming it and the reason; empty if none."""
    found = list(_form_faults(layout))
    if not found:
        found = [*_gap_faults(layout), *_start_faults(layout)]
    if not found and not _all_reachable(layout):
        found = ["part of the free floor cannot be reached by a disc of radius 0.5 m"]
    return [f"layout {layout.name}: {fault}" for fault in found]


def _form_faults(layout: Layout) -> Iterator[str]:
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


def _gap_faults(layout: Layout) -> Iterator[str]:
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


def _start_faults(layout: Layout) -> Iterator[str]:
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


def _hidden(layout: Layout) -> bool:
    """Whether a box stops each of many lines from the start to the disc of the other start."""
    start = np.array(layout.start)
    other = FLOOR_SIZE - start
    ahead = (other - start) / np.hypot(*(other - start))
    across = np.array([ahead[1], -ahead[0]])
    ends = other + np.linspace(-RADIUS, RADIUS, 33)[:, None] * across
    return all(_is_stopped(start, end, layout) for end in ends)


def _is_stopped(start: np.ndarray, end: np.ndarray, layout: Layout) -> bool:
    along = np.where(end == start, 1e-12, end - start)
    for box in layout.all_boxes:
        first = (np.array(box[:2]) - start) / along
        second = (np.array(box[2:]) - start) / along
        near, far = np.minimum(first, second).max(), np.maximum(first, second).min()
        if near <= far and far > 0 and near < 1:
            return True
    return False


def _all_reachable(layout: Layout) -> bool:
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
