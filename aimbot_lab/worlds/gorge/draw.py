"""Rows as pictures from above, x to the right and z up, and as a person in a terminal sees them.

Signs: `#` obstacle, `.` road, `+` road that was walked on, `@` the hero, `S` start, `E` end, digits
for treasures there to take, `x` for those that were taken, `*` the best way once the game is over.
What was seen and is out of the window is dim, in signs `%`, `,` and `-`; the rest is blank.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.foundation.display import GameView
from aimbot_lab.foundation.world import BoolArray, Picture
from aimbot_lab.worlds.canvas import INK, sheet
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import MAX_VIEW, SIDE, SITES, GorgeState, MapTables
from aimbot_lab.worlds.gorge.maps import GorgeMap
from aimbot_lab.worlds.gorge.optimum import Optimum
from aimbot_lab.worlds.gorge.spec import TARGETS

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


DIM = 0.45  # brightness of what was seen and is not now
UNSEEN = (0, 0, 0)
BEST = (216, 110, 190)
DIM_SIGNS = {"#": "%", ".": ",", "+": "-"}
MOVES = ((0, 1), (0, -1), (-1, 0), (1, 0))
TARGET_NAMES = {code: name for name, code in TARGETS.items()}
PER_LINE = 2  # treasures in a line of the panel


class Marks(NamedTuple):
    """What is on the cells of row 0, [SIDE, SIDE] by [x, z]."""

    signs: npt.NDArray[np.str_]
    colours: npt.NDArray[np.float64]  # [SIDE, SIDE, 3]
    now: BoolArray  # within the window
    seen: BoolArray  # once within it


def game_view(
    state: GorgeState, maps: MapTables, *, view: int, fog: bool, best: Optimum | None
) -> GameView:
    """Row 0 of `state`; `best` is the best walk of an episode that is over."""
    marks = _marks(state, maps, view)
    lifted = not fog or best is not None
    shown = np.ones_like(marks.seen) if lifted else marks.seen
    bright = np.ones_like(marks.now) if best is not None else marks.now
    if best is not None:
        _mark_walk(marks, int(state.start[0]), best)
        _mark_things(marks, state, maps)
    colours = np.where(bright[..., None], marks.colours, marks.colours * DIM)
    colours = np.where(shown[..., None], colours, UNSEEN)
    hero = int(state.x[0]), int(state.z[0])
    colours[hero], marks.signs[hero] = HERO, "@"
    signs = np.where(bright, marks.signs, _dimmed(marks.signs))
    signs = np.where(shown, signs, " ")
    picture = colours.astype(np.uint8).transpose(1, 0, 2)[::-1]
    return GameView(
        picture=np.ascontiguousarray(picture),
        signs=["".join(line) for line in signs.T[::-1]],
        focus=(core.SIDE - 1 - hero[1], hero[0]),
        panel=_panel(state, maps),
    )


def window_signs(state: GorgeState, maps: MapTables, *, view: int) -> list[str]:
    """The window around the hero in row 0, the topmost line first; beyond the grid is wall."""
    marks = _marks(state, maps, view)
    x, z = int(state.x[0]), int(state.z[0])
    marks.signs[x, z] = "@"
    wide = np.pad(marks.signs, view, constant_values="#")
    around = wide[x : x + 2 * view + 1, z : z + 2 * view + 1]
    return ["".join(line) for line in around.T[::-1]]


def _marks(state: GorgeState, maps: MapTables, view: int) -> Marks:
    road = cells_of(maps.road[int(state.map[0])])
    walked = cells_of(state.walked[0])
    signs = np.where(road, np.where(walked, "+", "."), "#")
    colours = np.where(road[..., None], ROAD, OBSTACLE).astype(np.float64)
    colours[walked] = WALKED
    here = np.zeros_like(walked)
    here[int(state.x[0]), int(state.z[0])] = True
    marks = Marks(signs, colours, seen_from(here, view), seen_from(walked, view))
    _mark_things(marks, state, maps)
    return marks


def _mark_things(marks: Marks, state: GorgeState, maps: MapTables) -> None:
    """Write start, end and treasures."""
    at, placed, left = int(state.map[0]), int(state.placed[0]), int(state.left[0])
    things = [(int(state.start[0]), "S", START), (int(maps.end[at]), "E", END)]
    for site in range(core.SITES):
        if placed >> site & 1:
            sign, colour = (str(site), TREASURE) if left >> site & 1 else ("x", TAKEN)
            things.append((int(maps.sites[at, site]), sign, colour))
    for cell, sign, colour in things:
        place = divmod(cell, core.SIDE)
        marks.signs[place], marks.colours[place] = sign, colour


def _mark_walk(marks: Marks, start: int, best: Optimum) -> None:
    """Write the cells of the best walk; moves into walls stay where they are."""
    x, z = divmod(start, core.SIDE)
    for move in best.actions.tolist():
        dx, dz = MOVES[move]
        to = x + dx, z + dz
        if min(to) >= 0 and max(to) < core.SIDE and marks.signs[to] != "#":
            x, z = to
        marks.signs[x, z], marks.colours[x, z] = "*", BEST


def _dimmed(signs: npt.NDArray[np.str_]) -> npt.NDArray[np.str_]:
    dim = signs.copy()
    for bright, sign in DIM_SIGNS.items():
        dim[signs == bright] = sign
    return dim


def _panel(state: GorgeState, maps: MapTables) -> list[str]:
    """Position, steps, treasures, score and bumps in lines of at most 23 characters."""
    at, placed, left = int(state.map[0]), int(state.placed[0]), int(state.left[0])
    limit = int(state.parameters[0, core.MAX_STEPS])
    level = f" {state.difficulty[0]}" if state.difficulty[0] else ""
    lines = [
        f"{TARGET_NAMES[int(state.target[0])]}{level}",
        f"at {state.x[0]}, {state.z[0]}",
        f"step {state.steps[0]} of {limit}",
        f"score {state.score[0]:g}",
        f"bumps {state.bumps[0]}",
    ]
    if placed:
        lines.append(f"treasures {(placed & ~left).bit_count()} of {placed.bit_count()}")
    worth = [
        f"{site}{'' if left >> site & 1 else 'x'}: {maps.points[at, site]:g}".ljust(10)
        for site in range(core.SITES)
        if placed >> site & 1
    ]
    return lines + ["".join(worth[k : k + PER_LINE]) for k in range(0, len(worth), PER_LINE)]


COLUMNS = 4  # maps in a line of a sheet
LETTERS = 13  # pixels


def draw_map_sheet(maps: Sequence[GorgeMap], *, cell: int = 8) -> Image.Image:
    """The `maps` in lines of four, `cell` pixels to a cell, each above its name."""
    drawn = [(grid.name, draw_map(grid, cell=cell)) for grid in maps]
    lines = [drawn[first : first + COLUMNS] for first in range(0, len(drawn), COLUMNS)]
    return sheet(lines, cell=cell * SIDE)


def draw_map(grid: GorgeMap, *, cell: int) -> Image.Image:
    """One map, 64 x `cell` pixels each way: S, E and the sites with their config_ids."""
    colours = np.where(grid.walls.T[::-1, :, None], OBSTACLE, ROAD).astype(np.uint8)
    picture = Image.fromarray(colours.repeat(cell, axis=0).repeat(cell, axis=1))
    marks = [(grid.start, "S", START), (grid.end, "E", END)]
    for number, (x, z) in enumerate(grid.sites.tolist()):
        marks.append(((x, z), str(number), TREASURE))
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(LETTERS)
    for (x, z), sign, colour in marks:
        middle = (x + 0.5) * cell, (SIDE - 0.5 - z) * cell
        pen.circle(middle, 0.9 * cell, fill=colour, outline=INK)
        pen.text(middle, sign, fill=INK, font=font, anchor="mm")
    return picture
