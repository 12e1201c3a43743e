"""Rows as pictures from above: x to the right, z up."""

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Picture
from aimbot_lab.worlds.gorge.core.state import MAX_VIEW, SIDE, SITES, GorgeState, MapTables

CELL = 8  # pixels along each side of a cell
ROAD, OBSTACLE = (236, 231, 218), (84, 92, 84)
WALKED = (158, 196, 236)
START, END = (64, 160, 88), (200, 48, 56)
TREASURE, TAKEN = (240, 176, 24), (150, 140, 118)
HERO = (24, 72, 190)
FOG = 0.5  # brightness of what the hero never saw
COLOURS = (ROAD, OBSTACLE, WALKED, START, END, TREASURE, TAKEN, HERO)


def draw_row(state: GorgeState, maps: MapTables, row: int, *, view: int) -> Picture:
    """Row `row`, [512, 512, 3]: walls, the way walked, treasures, end and hero; fog is darker."""
    at = int(state.map[row])
    walked = cells_of(state.walked[row])
    cells = np.where(cells_of(maps.road[at])[..., None], ROAD, OBSTACLE).astype(np.float64)
    cells[walked] = WALKED
    cells[~seen_from(walked, view)] *= FOG
    cells[divmod(int(maps.start[at]), SIDE)] = START
    cells[divmod(int(maps.end[at]), SIDE)] = END
    for site in range(SITES):
        if state.placed[row] >> site & 1:
            there = state.left[row] >> site & 1
            cells[divmod(int(maps.sites[at, site]), SIDE)] = TREASURE if there else TAKEN
    cells[state.x[row], state.z[row]] = HERO
    picture = cells.astype(np.uint8).transpose(1, 0, 2)[::-1]
    return np.ascontiguousarray(picture.repeat(CELL, axis=0).repeat(CELL, axis=1))


def cells_of(columns: np.ndarray) -> BoolArray:
    """[SIDE, SIDE] by [x, z] of bits [PADDED]."""
    inner = columns[MAX_VIEW : MAX_VIEW + SIDE, None]
    bits: BoolArray = (inner >> np.arange(SIDE, dtype=np.uint64) & np.uint64(1)).astype(np.bool_)
    return bits


def seen_from(walked: BoolArray, view: int) -> BoolArray:
    """Cells that were within the window when the hero was on one of the cells `walked`."""
    seen = np.zeros_like(walked)
    for x, z in np.argwhere(walked).tolist():
        seen[max(x - view, 0) : x + view + 1, max(z - view, 0) : z + view + 1] = True
    return seen
