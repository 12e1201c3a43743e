"""A search of the hall by what an agent sees: go where it was not for longest."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Float32Array
from aimbot_lab.worlds.duel.layouts.layout import FLOOR_SIZE

CELL = 2.0  # m
CELLS = int(FLOOR_SIZE / CELL)  # along a side of the hall
RADII = np.array([1.5, 3.5, 5.5, 7.5, 9.5, 11.5])  # m: places along a ray that are looked at
BODY = 0.8  # m before what a ray hits that are no use to walk to
PASSED_BY = 3.5  # m along rays within which it passes places by
LONG_AGO = 150.0  # decisions after which a place is as good as new
NEVER = -10.0 * LONG_AGO
STRAIGHT_ON = 0.6  # that a turn by a rad costs, in places never seen
OWN_HALF = 0.3  # what a place in the half where it began itself is worth of one in the other
WORTH = 0.3  # least value of a way; below it turns round to look for another
Floats = np.ndarray


class Explorer:
    """Chooses for each seat the ray that leads over places it was not near for longest.

    `angles` [R] are those of the rays in rad. `passed` [N, C * C] tells in which decision of its
    match each seat was last near a cell of the floor.
    """

    def __init__(self, angles: Sequence[float]) -> None:
        self._rays = np.arange(1, len(angles), 2) if len(angles) > 2 else np.arange(len(angles))
        self._angles = np.array(angles)[self._rays]
        self.passed = np.zeros((0, CELLS * CELLS), np.float32)

    def begin(self, starts: BoolArray) -> None:
        """Forget what the seats `starts` [N] passed by in their last matches."""
        if len(self.passed) != len(starts):
            self.passed = np.full((len(starts), CELLS * CELLS), NEVER, np.float32)
        self.passed[starts] = NEVER

    def turns(
        self, rows: np.ndarray, pose: Float32Array, distances: Float32Array, now: Floats
    ) -> tuple[Floats, BoolArray]:
        """(turns [K] in rad for the seats `rows`, whether each way is worth it).

        `pose` [K, 4] is x and z in m, cosine and sine of the yaw; `distances` [K, R] in m, 0 where
        a ray hits nothing within its range; `now` [K] counts decisions.
        """
        cells, clear = self._places(pose, distances[:, self._rays])
        age = now[:, None, None] - self.passed[rows[:, None, None], cells]
        half = np.where(cells % CELLS < CELLS / 2, OWN_HALF, 1.0)
        fresh = np.clip(age / LONG_AGO, 0.0, 1.0) * half * clear
        value = fresh.sum(axis=2) - STRAIGHT_ON * np.abs(self._angles)
        best = value.argmax(axis=1)
        near = clear & (RADII <= PASSED_BY)
        row, ray, place = np.nonzero(near)
        self.passed[rows[row], cells[row, ray, place]] = now[row]
        return self._angles[best], value.max(axis=1) > WORTH

    def _places(self, pose: Float32Array, distances: Float32Array) -> tuple[np.ndarray, BoolArray]:
        """Cells [K, R, P] of places along the rays, and whether nothing stands before each."""
        x, z, cosine, sine = (column[:, None] for column in pose.T.astype(np.float64))
        along_x = sine * np.cos(self._angles) + cosine * np.sin(self._angles)
        along_z = cosine * np.cos(self._angles) - sine * np.sin(self._angles)
        columns = ((x + along_x * RADII[:, None, None]) // CELL).clip(0, CELLS - 1)
        lines = ((z + along_z * RADII[:, None, None]) // CELL).clip(0, CELLS - 1)
        cells = np.moveaxis(columns * CELLS + lines, 0, -1).astype(np.int64)
        free = np.where(distances > 0.0, distances, np.inf)
        return cells, free[..., None] >= RADII + BODY
