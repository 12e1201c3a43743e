"""Shortest ways on a grid, by breadth-first search."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.jit import inlined, kernel

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]

DX = (0, 0, -1, 1)  # up, down, left, right
DZ = (1, -1, 0, 0)
NO_WAY = -1
NO_CELL = -1


@inlined
def is_wall(walls: Bools, x: int, z: int) -> bool:
    """Whether (x, z) is an obstacle of `walls` [W, H], or lies beyond them."""
    if x < 0 or z < 0 or x >= walls.shape[0] or z >= walls.shape[1]:
        return True
    return bool(walls[x, z])


@kernel
def fill_distances(
    walls: Bools, target: int, closed: int, queue: Int32s, distances: Int32s
) -> None:
    """Write the steps from each cell of `walls` [W, H] to `target` into `distances` [W, H].

    -1 where no way leads there. `target` and `closed`, a cell that no way enters or leaves (-1:
    none), are numbers H x + z; a target that is closed or a wall is reached from nowhere.
    `queue` [W H] is scratch.
    """
    height = walls.shape[1]
    for x in range(walls.shape[0]):
        for z in range(height):
            distances[x, z] = NO_WAY
    if target == closed or walls[target // height, target % height]:
        return
    distances[target // height, target % height] = 0
    queue[0] = target
    first, after = 0, 1
    while first < after:
        x, z = queue[first] // height, queue[first] % height
        first += 1
        for action in range(4):
            next_x, next_z = x + DX[action], z + DZ[action]
            if is_wall(walls, next_x, next_z) or next_x * height + next_z == closed:
                continue
            if distances[next_x, next_z] == NO_WAY:
                distances[next_x, next_z] = distances[x, z] + 1
                queue[after] = next_x * height + next_z
                after += 1
