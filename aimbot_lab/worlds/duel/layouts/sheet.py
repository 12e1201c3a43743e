"""Layouts on one sheet: a line for each difficulty, every hall with its name."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.worlds.arena import canvas as paint
from aimbot_lab.worlds.arena.canvas import Canvas
from aimbot_lab.worlds.duel.layouts import FLOOR_SIZE, Layout

NAME, GAP, LETTERS = 20, 8, 12  # pixels: below a hall, between halls, of the letters


def draw_layout_sheet(layouts: Sequence[Layout], *, cell: int = 160) -> Image.Image:
    """`layouts`, sorted by difficulty, `cell` pixels wide each."""
    lines = [list(line) for _, line in groupby(layouts, key=lambda one: one.difficulty)]
    columns = max((len(line) for line in lines), default=1)
    size = columns * (cell + GAP) + GAP, len(lines) * (cell + NAME + GAP) + GAP
    sheet = Image.new("RGB", size, (255, 255, 255))
    write, font = ImageDraw.Draw(sheet), ImageFont.load_default(LETTERS)
    for row, line in enumerate(lines):
        top = GAP + row * (cell + NAME + GAP)
        for column, layout in enumerate(line):
            left = GAP + column * (cell + GAP)
            sheet.paste(draw_layout(layout, size=cell), (left, top))
            text = f"{layout.difficulty} {layout.name}"
            write.text((left, top + cell + 2), text, fill=(30, 34, 44), font=font)
    return sheet


def draw_layout(layout: Layout, *, size: int) -> Image.Image:
    """One hall from above, `size` x `size` pixels."""
    canvas = Canvas(0.0, FLOOR_SIZE, size=size)
    for box in layout.all_boxes:
        canvas.box(np.array(box), paint.OBSTACLE, edge=paint.WALL)
    return canvas.picture()
