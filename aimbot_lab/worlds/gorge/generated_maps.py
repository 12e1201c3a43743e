"""Maps made from a seed: the same for the same numbers on every machine."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.kernels.rng import UInt64Array, seed_streams
from aimbot_lab.worlds.gorge.core.optimum import draw_heights, draw_index
from aimbot_lab.worlds.gorge.maps import MIN_STEPS, SIZE, GorgeMap, broken_rules, steps_to

MAX_TRIES = 1000  # of a map
POINT_STEP, POINT_LEVELS = 50, 4  # 50, 100, 150, 200
MIN_SHARE = 0.5  # of the road, that the start must be connected with

Bools = npt.NDArray[np.bool_]


def generated_maps(
    count: int, *, seed: int, obstacle_share: float, sites: int
) -> tuple[GorgeMap, ...]:
    """`count` maps with `sites` treasure sites (1 to 10) and a share of obstacles.

    The k-th depends on `seed` (64 bits), k, the share and the number of sites alone. Raises
    ConfigurationError where no map that obeys the rules is found.
    """
    streams = np.empty(count, np.uint64)
    seed_streams(streams, np.uint64(seed % 2**64), 0)
    return tuple(
        _Draws(streams, row).map_named(
            f"generated-{seed}-{row}", obstacle_share=obstacle_share, sites=sites
        )
        for row in range(count)
    )


class _Draws:
    """The random choices of one map."""

    def __init__(self, streams: UInt64Array, row: int) -> None:
        self._streams, self._row = streams, row

    def map_named(self, name: str, *, obstacle_share: float, sites: int) -> GorgeMap:
        """The first map that obeys the rules. Raises ConfigurationError."""
        obstacles = round(obstacle_share * SIZE**2)
        possible = SIZE**2 - obstacles >= sites + MIN_STEPS
        for _ in range(MAX_TRIES if possible else 0):
            grid = self._try(name, self._walls(obstacles), sites)
            if grid is not None and not broken_rules(grid):
                return grid
        share = f"obstacle_share {obstacle_share:g}"
        raise ConfigurationError(f"no solvable map with {share} in {MAX_TRIES:,} tries")

    def _walls(self, count: int) -> Bools:
        """The `count` highest cells of a new ground [64, 64]."""
        heights, scratch = np.empty((2, SIZE, SIZE), np.int64)
        draw_heights(self._streams, self._row, heights, scratch)
        walls = np.ones(SIZE**2, np.bool_)
        walls[np.argsort(heights.ravel(), kind="stable")[: SIZE**2 - count]] = False
        walls.setflags(write=False)  # as a map's are: one compiled kernel for both
        return walls.reshape(SIZE, SIZE)

    def _try(self, name: str, walls: Bools, sites: int) -> GorgeMap | None:
        """A map on `walls`; None where start, end and sites do not find a place."""
        start = self._cell(~walls)
        ways = steps_to(start, walls, closed=None)
        if (ways >= 0).sum() < MIN_SHARE * (~walls).sum() or ways.max() < MIN_STEPS:
            return None
        end = self._cell(ways >= MIN_STEPS)
        open_cells = steps_to(start, walls, closed=end) > 0
        if open_cells.sum() < sites:
            return None
        chosen = []
        for _ in range(sites):
            chosen.append(self._cell(open_cells))
            open_cells[chosen[-1]] = False
        points = [POINT_STEP * (1 + self._index(POINT_LEVELS)) for _ in range(sites)]
        return GorgeMap(name, walls, start, end, np.array(chosen), np.array(points, np.float64))

    def _cell(self, allowed: Bools) -> tuple[int, int]:
        """One of the cells that are `allowed` [64, 64], at least one."""
        cells = np.flatnonzero(allowed)
        x, z = divmod(int(cells[self._index(len(cells))]), SIZE)
        return x, z

    def _index(self, count: int) -> int:
        return int(draw_index(self._streams, self._row, count))
