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
    """Write the observation of `row` into `seen` [B, D].

    Places are unsigned: numba counts signed ones from an array's end where they are negative.
    """
    out = seen[row]
    for column in range(out.size):
        out[column] = ZERO
    x, z = state.x[row], state.z[row]
    for block in range(tables.blocks.shape[0]):
        code, first = tables.blocks[block, 0], np.uint64(tables.blocks[block, 1])
        if code == POS_ROW:
            out[first + np.uint64(x)] = ONE
        elif code == POS_COL:
            out[first + np.uint64(z)] = ONE
        elif code == OBSTACLE_MAP:
            window = Window(tables.maps.road, state.map[row], x, z, tables.reach, ALL_BITS)
            write_window(window, out, first)
        elif code == WALKED_MAP:
            write_window(Window(state.walked, row, x, z, tables.reach, U0), out, first)
        elif code == TREASURE_MAP:
            mark_treasures(state, tables, out, first, row)
        elif code in (LIST_TREASURE, TREASURE_LIST):
            write_bits(out, first, np.uint64(state.left[row]))
        elif code == END_MAP:
            mark_in_window(out, first, x, z, tables.reach, tables.maps.end[state.map[row]])
        else:
            write_numbers(state, tables, out, first, row, code)


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
    """Write the memory of the cells that were arrived at; the others are 0 already."""
    for x in range(SIDE):
        column = state.walked[row, x + MAX_VIEW]
        if column == U0:
            continue
        for z in range(SIDE):
            if (column >> np.uint64(z)) & U1:
                cell = np.uint64(SIDE * x + z)
                count = min(int(state.arrivals[row, cell]), FULL_MEMORY)
                out[first + cell] = np.float32(count / FULL_MEMORY)


@inlined
def write_bits(out: Floats32, first: np.uint64, sites: np.uint64) -> None:
    """Write 1 for each of `sites`; the others are 0 already."""
    while sites != U0:
        out[first] = np.float32(np.int32(sites & U1))
        sites >>= U1
        first += U1


@inlined
def write_window(window: Window, out: Floats32, first: np.uint64) -> None:
    """Write the window around a cell, 1 for each bit."""
    width = 2 * window.reach + 1
    right = np.uint64(max(window.z - window.reach, 0))
    left = np.uint64(max(window.reach - window.z, 0))
    edge = np.uint64(window.x + MAX_VIEW - window.reach)
    for dx in range(width):
        bits = ((window.columns[window.layer, edge + np.uint64(dx)] >> right) << left) ^ window.flip
        for _ in range(width):
            out[first] = np.float32(np.int32(bits & U1))
            bits >>= U1
            first += U1


@inlined
def mark_treasures(
    state: GorgeState, tables: GorgeTables, out: Floats32, first: np.uint64, row: int
) -> None:
    """Write 1 where the window holds a treasure that is there to take."""
    left, site = state.left[row], 0
    while left != 0:
        if left & 1:
            cell = tables.maps.sites[state.map[row], site]
            mark_in_window(out, first, state.x[row], state.z[row], tables.reach, cell)
        left >>= 1
        site += 1


@inlined
def mark_in_window(out: Floats32, first: np.uint64, x: int, z: int, reach: int, cell: int) -> None:
    """Write 1 for `cell` where the window around (x, z) holds it."""
    dx, dz = cell // SIDE - x, cell % SIDE - z
    if -reach <= dx <= reach and -reach <= dz <= reach:
        out[first + np.uint64((dx + reach) * (2 * reach + 1) + dz + reach)] = ONE
