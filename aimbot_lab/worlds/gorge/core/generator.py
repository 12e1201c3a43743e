"""The ground of generated maps: valleys that wind and branch, in whole numbers alone.

Noise is blurred twice; the road follows the lines on which it has its mean. Whole numbers make
the same maps on every machine.
"""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.foundation.kernels.rng import UInt64Array, uniform_index

Heights = npt.NDArray[np.int64]
NOISE = 1 << 20  # different values of a cell
REACH = 2  # cells each way of a blur


@inlined
def blur(heights: Heights, blurred: Heights) -> None:
    """Write the sum of the cells around each of `heights` [W, H], its edge repeated beyond it."""
    width, height = heights.shape
    for x in range(width):
        for z in range(height):
            total = 0
            for near_x in range(x - REACH, x + REACH + 1):
                for near_z in range(z - REACH, z + REACH + 1):
                    inside_x = min(max(near_x, 0), width - 1)
                    total += heights[inside_x, min(max(near_z, 0), height - 1)]
            blurred[x, z] = total


@kernel
def draw_heights(streams: UInt64Array, row: int, heights: Heights, scratch: Heights) -> None:
    """Write how far each cell lies above the valleys' floor, all at least 0, to `heights` [W, H].

    Draws from stream `row`. `scratch` has the shape of `heights`.
    """
    width, height = heights.shape
    for x in range(width):
        for z in range(height):
            heights[x, z] = uniform_index(streams, row, NOISE)
    blur(heights, scratch)
    blur(scratch, heights)
    total = 0
    for x in range(width):
        for z in range(height):
            total += heights[x, z]
    mean = total // (width * height)
    for x in range(width):
        for z in range(height):
            heights[x, z] = abs(heights[x, z] - mean)


@kernel
def draw_index(streams: UInt64Array, row: int, count: int) -> int:
    """A whole number in [0, count), drawn from stream `row`."""
    return uniform_index(streams, row, count)
