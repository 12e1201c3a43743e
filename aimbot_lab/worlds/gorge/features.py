"""The blocks of columns that an observation is made of."""

from collections.abc import Iterator
from math import atan2, pi, sqrt
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.world import ObservationBlock
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.settings import GorgeSettings

WINDOWS = ("obstacle_map", "treasure_map", "end_map", "walked_map")
SIZES = {
    "position": 2,
    "pos_norm": 2,
    "pos_polar": 2,
    "treasure": core.SITES,
    "location_memory": core.CELLS,
    "pos_row": core.SIDE,
    "pos_col": core.SIDE,
    "list_treasure": core.SITES,
    "steps_left": 1,
}


class Column(NamedTuple):
    """A number of an observation."""

    name: str
    low: float
    high: float


def block_size(name: str, view: int) -> int:
    """Columns of the block `name`."""
    return int((2 * view + 1) ** 2) if name in WINDOWS else SIZES[name]


def columns(settings: GorgeSettings) -> Iterator[Column]:
    """Every column of an observation, in order."""
    for name in settings.features:
        high = {"position": core.SIDE - 1, "steps_left": settings.max_steps}.get(name, 1)
        for index in range(block_size(name, settings.view)):
            yield Column(name if name == "steps_left" else f"{name}_{index}", 0.0, float(high))


def observation_blocks(settings: GorgeSettings) -> tuple[ObservationBlock, ...]:
    """The blocks of an observation; windows are pictures of one channel, by column and row."""
    side = 2 * settings.view + 1
    return tuple(
        ObservationBlock(name, "image", (side, side, 1))
        if name in WINDOWS
        else ObservationBlock(name, "vector", (SIZES[name],))
        for name in settings.features
    )


def block_table(settings: GorgeSettings) -> core.Ints:
    """[F, 2] code of each block, and its first column."""
    sizes = [block_size(name, settings.view) for name in settings.features]
    codes = [core.BLOCKS.index(name) for name in settings.features]
    return np.column_stack([codes, np.cumsum([0, *sizes[:-1]])]).astype(np.int64)


def polar_table() -> core.Floats32:
    """[CELLS, 2] of `pos_polar`: sqrt(x^2 + z^2) / (64 sqrt 2), and atan2(z, x) / (pi / 2)."""
    cells = [divmod(cell, core.SIDE) for cell in range(core.CELLS)]
    longest = core.SIDE * sqrt(2.0)
    polar = [(sqrt(x * x + z * z) / longest, atan2(z, x) / (pi / 2)) for x, z in cells]
    return np.array(polar, np.float32)
