"""Players of Gorge Walk without learning: one that knows the map, and one that explores it."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Observations,
    columns_of,
)
from aimbot_lab.worlds.gorge.core.state import MOVES
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.gorge.spec import WINDOWS, block_size

if TYPE_CHECKING:
    from aimbot_lab.worlds.gorge.gorge import Gorge


class Guide:
    """Plays in every row of `world` a walk of the highest score that its episode allows."""

    def __init__(self, world: "Gorge") -> None:
        self._world = world
        self._episode = np.full(world.num_envs, -1)
        self._walks: list[npt.NDArray[np.int8]] = [np.zeros(0, np.int8)] * world.num_envs

    def __call__(
        self, observations: Observations, _starts: BoolArray | None = None
    ) -> Float32Array:
        """Actions [N, 1]; of `observations` [N, D] nothing counts: the world itself is read."""
        state = self._world.state
        for row in np.flatnonzero(state.order != self._episode).tolist():
            self._walks[row] = self._world.best_walk(row).actions
        self._episode[:] = state.order
        steps = state.steps.tolist()
        moves = [walk[step] for walk, step in zip(self._walks, steps, strict=True)]
        return np.array(moves, np.float32)[: len(observations), None]


NEIGHBOURS = ((0, 1), (0, -1), (-1, 0), (1, 0))  # dx and dz of each move
FAR = 1 << 20  # steps, more than any way in a window takes


class Explorer:
    """Walks to what it sees, and else where it has not been; ties are broken at random.

    A step towards the nearest treasure in the window that road in the window leads to, towards the
    end where `end_map` shows it, else onto a free neighbour that it has not walked on, else onto
    any. A window that the observation lacks it takes for empty.
    """

    def __init__(self, settings: GorgeSettings, seed: int) -> None:
        self._side, self._view = 2 * settings.view + 1, settings.view
        sizes = [block_size(name, settings.view) for name in settings.features]
        starts = np.cumsum([0, *sizes])
        self._first = {
            name: int(first)
            for name, first in zip(settings.features, starts, strict=False)
            if name in WINDOWS
        }
        self._random = np.random.default_rng(seed)

    def __call__(
        self, observations: Observations, _starts: BoolArray | None = None
    ) -> Float32Array:
        """Actions [N, 1] for raw `observations` [N, D]."""
        road = ~self._window(observations, "obstacle_map")
        end = self._window(observations, "end_map")
        treasures = self._window(observations, "treasure_map")
        walked = self._window(observations, "walked_map")
        free = self._beside(road)
        likes = [
            free & self._towards(treasures, road & ~end),  # the end can't be walked through
            free & self._towards(end, road),
            free & ~self._beside(walked),
            free,
        ]
        wanted = np.ones_like(free)
        for like in reversed(likes):
            wanted = np.where(like.any(axis=1, keepdims=True), like, wanted)
        ties = self._random.random(wanted.shape)
        moves: Float32Array = np.where(wanted, ties, -1.0).argmax(axis=1)[:, None]
        return moves.astype(np.float32)

    def _window(self, observations: Observations, name: str) -> BoolArray:
        """[N, 2 v + 1, 2 v + 1] by [x, z]; without such a block all False."""
        shape = len(observations), self._side, self._side
        if name not in self._first:
            return np.zeros(shape, np.bool_)
        if (pictures := observations.dtype.names) is not None and name in pictures:
            shown: BoolArray = observations[name][..., 0] > 0
            return shown
        first, observations = self._first[name], columns_of(observations)
        window: BoolArray = observations[:, first : first + self._side**2].reshape(shape) > 0
        return window

    def _beside(self, window: np.ndarray) -> np.ndarray:
        """[N, 4] what a window holds beside the hero, by move."""
        v = self._view
        return np.stack([window[:, v + dx, v + dz] for dx, dz in NEIGHBOURS], axis=1)

    def _towards(self, goals: BoolArray, road: BoolArray) -> BoolArray:
        """[N, 4] moves that begin a shortest way on `road` in the window to one of `goals`."""
        steps = np.where(goals & road, 0, FAR)
        while True:
            around = np.pad(steps, ((0, 0), (1, 1), (1, 1)), constant_values=FAR)
            shifted = [
                around[:, 1 + dx : 1 + dx + self._side, 1 + dz : 1 + dz + self._side]
                for dx, dz in NEIGHBOURS
            ]
            nearer = np.where(road, np.minimum(steps, np.min(shifted, axis=0) + 1), FAR)
            nearer = np.minimum(nearer, FAR)
            if np.array_equal(nearer, steps):
                break
            steps = nearer
        beside = self._beside(steps)
        best = beside.min(axis=1, keepdims=True)
        towards: BoolArray = (beside == best) & (best < FAR)
        assert towards.shape[1] == MOVES
        return towards
