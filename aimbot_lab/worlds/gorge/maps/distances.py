"""How many steps each cell of a map is from a place."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.worlds.gorge.maps.grid import GorgeMap

Cell = tuple[int, int]  # (x, z)


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
