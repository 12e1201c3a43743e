"""A row as its episode begins: its own values, from which a world of one row goes on."""

from typing import TYPE_CHECKING, cast

import numpy as np

from aimbot_lab.foundation.replays import MakeWorld, RowArrays
from aimbot_lab.worlds.gorge.core.state import MAX_VIEW, SIDE
from aimbot_lab.worlds.gorge.settings import GorgeSettings

if TYPE_CHECKING:
    from aimbot_lab.worlds.gorge.gorge import Gorge

DERIVED = ("arrivals", "walked")  # large, and known at a beginning: one arrival where it starts


def row_start(world: "Gorge", row: int) -> RowArrays:
    """Copies of what the episode of `row` depends on, which is about to begin."""
    of_rows = set(world.state._fields) - {"sampler_key", "clock"}
    return {
        name: (array[row : row + 1] if name in of_rows else array).copy()
        for name, array in world.arrays().items()
        if name not in DERIVED
    }


def restored(settings: GorgeSettings, start: RowArrays, make: MakeWorld) -> "Gorge":
    """A world of one row in which the episode of `start` is about to begin.

    Raises MisuseError where `start` is not of such a world.
    """
    world = cast("Gorge", make(settings))
    empty = {name: np.zeros_like(getattr(world.state, name)) for name in DERIVED}
    world.restore({**start, **empty})
    x, z = int(world.state.x[0]), int(world.state.z[0])
    world.state.arrivals[0, SIDE * x + z] = 1
    world.state.walked[0, x + MAX_VIEW] = np.uint64(1) << np.uint64(z)
    return world
