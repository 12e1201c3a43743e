"""All presets on one sheet: a line for each target and difficulty, every block with its name."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.worlds.arena import canvas as paint
from aimbot_lab.worlds.arena.canvas import Canvas, Colour
from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE, TARGETS
from aimbot_lab.worlds.arena.presets import RADIUS, Preset

COLUMNS = 8  # blocks in a line before the next one begins
MARGIN = 0.75  # m of floor around a block
HEAD = 30  # pixels above the blocks
SIDE = 90  # pixels left of the blocks
NAME = 20  # pixels below a block
GAP = 8  # pixels between blocks
SMALL, LARGE = 12, 15  # pixels of the letters
PAPER: Colour = (255, 255, 255)
INK: Colour = (30, 34, 44)
SIGN = 14  # pixels of a sign in the legend
LEGEND: tuple[tuple[str, Colour, Colour], ...] = (
    ("FireBase", paint.FIRE_BASE, paint.FIRE_BASE_EDGE),
    ("obstacle", paint.OBSTACLE, paint.WALL),
    ("enemy", paint.ENEMY, paint.DARK),
)
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def draw_preset_sheet(presets: Sequence[Preset], *, cell: int = 132) -> Image.Image:
    """The blocks of `presets`, `cell` pixels wide each, sorted by target and difficulty."""
    lines = _lines(presets)
    columns = max((len(line) for line in lines), default=1)
    size = SIDE + columns * (cell + GAP), HEAD + len(lines) * (cell + NAME) + GAP
    sheet = Image.new("RGB", size, PAPER)
    write = ImageDraw.Draw(sheet)
    _write_legend(sheet, write, f"{len(presets)} presets")
    small, large = ImageFont.load_default(SMALL), ImageFont.load_default(LARGE)
    for number, line in enumerate(lines):
        top = HEAD + number * (cell + NAME)
        if number == 0 or _kind(line[0]) != _kind(lines[number - 1][0]):
            write.text((GAP, top), line[0].target, fill=INK, font=large)
            write.text((GAP, top + NAME), f"difficulty {line[0].difficulty}", fill=INK, font=small)
        for column, preset in enumerate(line):
            left = SIDE + column * (cell + GAP)
            sheet.paste(draw_preset(preset, size=cell), (left, top))
            name = _fitted(preset.name, small, width=cell)
            write.text((left, top + cell + 2), name, fill=INK, font=small)
    return sheet


def draw_preset(preset: Preset, *, size: int) -> Image.Image:
    """One block in its own frame, `size` x `size` pixels."""
    canvas = Canvas(-MARGIN, BLOCK_SIZE + MARGIN, size=size)
    canvas.box(np.array([0.0, 0.0, BLOCK_SIZE, BLOCK_SIZE]), paint.BLOCK, edge=paint.BLOCK_EDGE)
    x, z, diameter = preset.fire_base
    centre = np.array([x, z])
    canvas.disc(centre, diameter / 2, fill=paint.FIRE_BASE, edge=paint.FIRE_BASE_EDGE)
    for box in preset.obstacles:
        canvas.box(np.array(box), paint.OBSTACLE, edge=paint.WALL)
    for enemy in preset.enemies:
        canvas.disc(np.array(enemy), RADIUS, fill=paint.ENEMY, edge=paint.DARK)
    return canvas.picture()


def _lines(presets: Sequence[Preset]) -> list[list[Preset]]:
    """Presets of one target and difficulty each, at most COLUMNS of them."""
    ordered = sorted(presets, key=_kind)
    lines = []
    for _, group in groupby(ordered, key=_kind):
        alike = list(group)
        lines += [alike[first : first + COLUMNS] for first in range(0, len(alike), COLUMNS)]
    return lines


def _kind(preset: Preset) -> tuple[int, int]:
    return TARGETS[preset.target], preset.difficulty


def _write_legend(sheet: Image.Image, write: ImageDraw.ImageDraw, title: str) -> None:
    """The first line: how many presets there are, and what the signs mean."""
    write.text((GAP, HEAD / 2), title, fill=INK, font=ImageFont.load_default(LARGE), anchor="lm")
    small = ImageFont.load_default(SMALL)
    left = SIDE + SIDE // 2
    for words, fill, edge in LEGEND:
        sign = Canvas(-1.0, 1.0, size=SIGN)
        if words == "obstacle":
            sign.box(np.array([-0.8, -0.8, 0.8, 0.8]), fill, edge=edge)
        else:
            sign.disc(np.zeros(2), 0.9, fill=fill, edge=edge)
        sheet.paste(sign.picture(), (left, (HEAD - SIGN) // 2))
        write.text((left + SIGN + 4, HEAD / 2), words, fill=INK, font=small, anchor="lm")
        left += SIGN + 4 + round(small.getlength(words)) + 2 * GAP


def _fitted(text: str, font: Font, *, width: int) -> str:
    """`text`, shortened where it is wider than `width` pixels."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "...") > width:
        text = text[:-1]
    return text + "..."
