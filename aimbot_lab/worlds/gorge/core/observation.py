"""What the hero sees: blocks of columns, each written whole in every step.

All columns are written anew because buffers belong to the caller, who may give another each time.
"""

from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.worlds.gorge.core.state import (
    END_MAP,
    FULL_MEMORY,
    LIST_TREASURE,
    LOCATION_MEMORY,
    MAX_STEPS,
    MAX_VIEW,
    OBSTACLE_MAP,
    POS_COL,
    POS_NORM,
    POS_POLAR,
    POS_ROW,
    POSITION,
    SIDE,
    SITES,
    TREASURE_LIST,
    TREASURE_MAP,
    WALKED_MAP,
    Floats32,
    GorgeState,
    GorgeTables,
    Words,
)

ONE, ZERO = np.float32(1.0), np.float32(0.0)
U0, U1 = np.uint64(0), np.uint64(1)
ALL_BITS = np.uint64(2**64 - 1)
LANES = 8  # numbers that fill a vector register


class Window(NamedTuple):
    """A square around a cell, in columns of bits."""

    columns: Words  # [N, PADDED]
    layer: int  # of N
    x: int  # of the cell
    z: int
    reach: int  # cells to each side
    flip: np.uint64  # ALL_BITS where cells without a bit count, else 0


@inlined
def observe(state: GorgeState, tables: GorgeTables, seen: Floats32, row: int) -> None:
    """Write the observation of `row` into `seen` [B, D], block after block.

    Places are unsigned: numba counts signed ones from an array's end where they are negative.
    """
    out = seen[row]
    x, z, at = state.x[row], state.z[row], state.map[row]
    for block in range(tables.blocks.shape[0]):
        code, first = tables.blocks[block, 0], np.uint64(tables.blocks[block, 1])
        if code == POS_ROW:
            write_one_hot(out, first, x)
        elif code == POS_COL:
            write_one_hot(out, first, z)
        elif code == OBSTACLE_MAP:
            write_window(Window(tables.maps.road, at, x, z, tables.reach, ALL_BITS), out, first)
        elif code == WALKED_MAP:
            write_window(Window(state.walked, row, x, z, tables.reach, U0), out, first)
        elif code == TREASURE_MAP:
            clear_window(out, first, tables.reach)
            mark_treasures(state, tables, out, first, row)
        elif code in (LIST_TREASURE, TREASURE_LIST):
            write_bits(out, first, np.uint64(state.left[row]), SITES)
        elif code == END_MAP:
            clear_window(out, first, tables.reach)
            mark_in_window(out, first, x, z, tables.reach, tables.maps.end[at])
        else:
            write_numbers(state, tables, out, first, row, code)


@inlined
def write_one_hot(out: Floats32, first: np.uint64, place: int) -> None:
    """Write SIDE columns, 1 at `place`."""
    for column in range(SIDE):
        out[first + np.uint64(column)] = ZERO
    out[first + np.uint64(place)] = ONE


@inlined
def clear_window(out: Floats32, first: np.uint64, reach: int) -> None:
    """Write a window of 0."""
    for column in range((2 * reach + 1) * (2 * reach + 1)):
        out[first + np.uint64(column)] = ZERO


@inlined
def write_numbers(
    state: GorgeState, tables: GorgeTables, out: Floats32, first: np.uint64, row: int, code: int
) -> None:
    """Write one of the blocks that hold plain numbers."""
    x, z = state.x[row], state.z[row]
    second = first + U1
    if code == POSITION:
        out[first] = np.float32(x)
        out[second] = np.float32(z)
    elif code == POS_NORM:
        out[first] = np.float32(x / SIDE)
        out[second] = np.float32(z / SIDE)
    elif code == POS_POLAR:
        out[first] = tables.polar[SIDE * x + z, 0]
        out[second] = tables.polar[SIDE * x + z, 1]
    elif code == LOCATION_MEMORY:
        write_memory(state, out, first, row)
    else:
        out[first] = np.float32(state.parameters[row, MAX_STEPS] - state.steps[row])


@inlined
def write_memory(state: GorgeState, out: Floats32, first: np.uint64, row: int) -> None:
    """Write the memory of all cells; columns that were never walked on hold 0."""
    for x in range(SIDE):
        column, start = state.walked[row, x + MAX_VIEW], first + np.uint64(SIDE * x)
        for z in range(SIDE):
            out[start + np.uint64(z)] = ZERO
        if column == U0:
            continue
        for z in range(SIDE):
            if (column >> np.uint64(z)) & U1:
                count = min(int(state.arrivals[row, SIDE * x + z]), FULL_MEMORY)
                out[start + np.uint64(z)] = np.float32(count / FULL_MEMORY)


@inlined
def write_bits(out: Floats32, first: np.uint64, bits: np.uint64, count: int) -> None:
    """Write `count` columns from `first` on, 1 for each of the lowest `bits` that is set.

    Writes LANES columns at a time where there are as many, which fill a vector register. What lies
    beyond `count` gets 0, and then what it is to hold: blocks are written in their order.
    """
    bits &= (U1 << np.uint64(count)) - U1
    while count > 0:
        if first + np.uint64(LANES) <= np.uint64(out.size):
            for lane in range(LANES):
                bit = np.int32((bits >> np.uint64(lane)) & U1)
                out[first + np.uint64(lane)] = np.float32(bit)
        else:
            for lane in range(min(count, LANES)):
                bit = np.int32((bits >> np.uint64(lane)) & U1)
                out[first + np.uint64(lane)] = np.float32(bit)
        bits >>= np.uint64(LANES)
        first += np.uint64(LANES)
        count -= LANES


@inlined
def write_window(window: Window, out: Floats32, first: np.uint64) -> None:
    """Write the window around a cell, 1 for each bit."""
    width = 2 * window.reach + 1
    right = np.uint64(max(window.z - window.reach, 0))
    left = np.uint64(max(window.reach - window.z, 0))
    edge = np.uint64(window.x + MAX_VIEW - window.reach)
    for dx in range(width):
        bits = ((window.columns[window.layer, edge + np.uint64(dx)] >> right) << left) ^ window.flip
        write_bits(out, first, bits, width)
        first += np.uint64(width)


@inlined
def mark_treasures(
    state: GorgeState, tables: GorgeTables, out: Floats32, first: np.uint64, row: int
) -> None:
    """Write 1 where the window holds a treasure that is there to take."""
    x, z, at = state.x[row], state.z[row], state.map[row]
    near, site = state.left[row] & int(tables.maps.near[at, SIDE * x + z]), 0
    while near != 0:
        if near & 1:
            mark_in_window(out, first, x, z, tables.reach, tables.maps.sites[at, site])
        near >>= 1
        site += 1


@inlined
def mark_in_window(out: Floats32, first: np.uint64, x: int, z: int, reach: int, cell: int) -> None:
    """Write 1 for `cell` where the window around (x, z) holds it."""
    dx, dz = cell // SIDE - x, cell % SIDE - z
    if -reach <= dx <= reach and -reach <= dz <= reach:
        out[first + np.uint64((dx + reach) * (2 * reach + 1) + dz + reach)] = ONE
