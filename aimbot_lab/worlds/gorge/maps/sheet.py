"""A sheet of maps: each from above, x to the right, z up."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.worlds.gorge.maps import SIZE, GorgeMap

Colour = tuple[int, int, int]

COLUMNS = 4  # maps in a line
GAP = 8  # pixels between maps
NAME = 20  # pixels below a map
LETTERS = 13  # pixels
MAX_NAME = 40  # characters below a map
PAPER: Colour = (255, 255, 255)
INK: Colour = (30, 34, 44)
ROAD: Colour = (236, 231, 218)
OBSTACLE: Colour = (84, 92, 84)
START: Colour = (64, 160, 88)
END: Colour = (200, 48, 56)
TREASURE: Colour = (240, 176, 24)


def draw_map_sheet(maps: Sequence[GorgeMap], *, cell: int = 8) -> Image.Image:
    """The `maps` in lines of four, `cell` pixels to a cell, each above its name."""
    columns = min(COLUMNS, len(maps))
    lines = -(-len(maps) // COLUMNS)
    width, height = cell * SIZE + GAP, cell * SIZE + NAME + GAP
    sheet = Image.new("RGB", (GAP + columns * width, GAP + lines * height), PAPER)
    write = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(LETTERS)
    for number, grid in enumerate(maps):
        left, top = GAP + number % COLUMNS * width, GAP + number // COLUMNS * height
        sheet.paste(draw_map(grid, cell=cell), (left, top))
        name = grid.name if len(grid.name) <= MAX_NAME else f"{grid.name[:MAX_NAME]}..."
        write.text((left, top + cell * SIZE + 2), name, fill=INK, font=font)
    return sheet


def draw_map(grid: GorgeMap, *, cell: int) -> Image.Image:
    """One map, 64 x `cell` pixels each way: S, E and the sites with their config_ids."""
    colours = np.where(grid.walls.T[::-1, :, None], OBSTACLE, ROAD).astype(np.uint8)
    picture = Image.fromarray(colours.repeat(cell, axis=0).repeat(cell, axis=1))
    marks = [(grid.start, "S", START), (grid.end, "E", END)]
    for number, (x, z) in enumerate(grid.sites.tolist()):
        marks.append(((x, z), str(number), TREASURE))
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(LETTERS)
    for (x, z), sign, colour in marks:
        middle = (x + 0.5) * cell, (SIZE - 0.5 - z) * cell
        pen.circle(middle, 0.9 * cell, fill=colour, outline=INK)
        pen.text(middle, sign, fill=INK, font=font, anchor="mm")
    return picture
