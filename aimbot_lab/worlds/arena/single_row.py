"""One row of an arena by itself: how its running episode goes on depends on no other row."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.capacity import (
    MAX_ENEMIES_OF_ROW,
    MAX_OBSTACLES_OF_ROW,
    OF_ENEMIES,
)
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import ArenaState
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.snapshots import with_new_columns

OF_ALL_ROWS = ("sampler_key", "clock")  # read only where an episode begins
LARGEST = 1e30  # no number of a row is larger; it stands for "never"

RowArrays = Mapping[str, np.ndarray]  # by the names of ArenaState; each array has one row


def solo_settings(settings: ArenaSettings) -> ArenaSettings:
    """`settings` of an arena of one row; target blocks come with the row."""
    return replace(settings, num_envs=1, threads=1, presets=())


def row_of(state: ArenaState, row: int) -> RowArrays:
    """A copy of what the episode running in `row` depends on."""
    named = state._asdict().items()
    return {name: array[row : row + 1].copy() for name, array in named if name not in OF_ALL_ROWS}


def solo_arena(settings: ArenaSettings, row: RowArrays) -> Arena:
    """An arena of one row that goes on from `row`, as `row_of` gives it, bit for bit.

    That holds until the episode ends; a Stay follows. Target blocks are not looked up: what the
    row's block holds is in the row. Raises MisuseError where `row` is none of such an arena.
    """
    arena = Arena(solo_settings(settings), presets=())
    row = with_new_columns(row)
    _check_forms(row, arena.state)
    _check_numbers(row)
    shared = {name: getattr(arena.state, name) for name in OF_ALL_ROWS}
    arena.adopt(ArenaState(**{name: array.copy() for name, array in row.items()}, **shared))
    return arena


def _check_forms(row: RowArrays, own: ArenaState) -> None:
    """Kernels do not check bounds: every array must be as large as they take it to be."""
    wanted = {name: array for name, array in own._asdict().items() if name not in OF_ALL_ROWS}
    for name in sorted(wanted.keys() ^ row.keys()):
        what = "is missing" if name in wanted else "is no array of an arena"
        raise MisuseError(f"row: {name} {what}")
    for name, array in wanted.items():
        given, shape = row[name], array.shape
        if name == "obstacles":
            shape = (1, min(max(given.shape[1:2], default=0), MAX_OBSTACLES_OF_ROW), 4)
        if name in OF_ENEMIES:
            room = min(max(row["enemies"].shape[1:2], default=0), MAX_ENEMIES_OF_ROW)
            shape = (1, room, *shape[2:])
        if given.shape != shape or given.dtype != array.dtype:
            raise MisuseError(
                f"row: {name} is {given.dtype} {given.shape}, not {array.dtype} {shape}"
            )


def _check_numbers(row: RowArrays) -> None:
    for name, array in row.items():
        if array.dtype.kind == "f" and not (np.abs(array) <= LARGEST).all():
            raise MisuseError(f"row: {name} holds what is no number of an arena")
    for name, low, most in (
        ("obstacle_count", 0, row["obstacles"].shape[1]),
        ("enemy_count", 0, row["enemies"].shape[1]),
        ("target", 0, core.TARGET_COUNT - 1),
        ("difficulty", 0, core.DIFFICULTY_COUNT),
        ("decisions", 0, 10**9),
        ("gun_ticks", 0, 10**9),
        ("episode", 1, 10**15),
    ):
        if not low <= int(row[name][0]) <= most:
            raise MisuseError(f"row: {name} is {int(row[name][0])}, not {low} to {most}")
