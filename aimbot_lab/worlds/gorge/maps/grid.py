"""A map: where the obstacles, the start, the end and the treasure sites of a game are.

And the ways that it must have, so that every game on it can be won.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

SIZE = 64  # cells each way
MAX_SITES = 10
MIN_STEPS = 8  # from start to end

Cell = tuple[int, int]  # (x, z)


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


def distances(grid: GorgeMap, target: Cell, *, through_end: bool = False) -> npt.NDArray[np.int32]:
    """Steps [64, 64] by [x, z] of the shortest way from each cell to `target`; -1: no way.

    The game is over at the end, so that no way leads through it, unless `through_end`.
    """
    closed = None if through_end or target == grid.end else grid.end
    return steps_to(target, grid.walls, closed=closed)


def steps_to(
    target: Cell, walls: npt.NDArray[np.bool_], *, closed: Cell | None
) -> npt.NDArray[np.int32]:
    """As `distances`, on `walls` [W, H] alone; `closed` is a cell that counts as one of them."""
    from aimbot_lab.worlds.gorge.core.distances import NO_CELL, fill_distances  # loads numba

    width, height = walls.shape
    closed_cell = NO_CELL if closed is None else height * closed[0] + closed[1]
    found = np.empty((width, height), np.int32)
    scratch = np.empty(width * height, np.int32)
    fill_distances(walls, height * target[0] + target[1], closed_cell, scratch, found)
    return found


def broken_rules(grid: GorgeMap) -> list[tuple[Cell, str]]:
    """Every rule that the map breaks, after the cell to blame.

    Road that can't be reached is allowed.
    """
    from_start, steps = distances(grid, grid.start), shortest_way(grid)
    broken: list[tuple[Cell, str]] = [
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
