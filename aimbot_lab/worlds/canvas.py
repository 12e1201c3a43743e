"""Pictures of floors from above, drawn in metres, x to the right and z up, and sheets of them."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.worlds.arena.core.state import Floats

Opaque = tuple[int, int, int]  # red, green, blue; 0 to 255
Colour = Opaque | tuple[int, int, int, int]  # and opacity
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
FINE = 2  # drawn this much larger and reduced at the end, which smooths the edges

FLOOR: Opaque = (246, 244, 238)
GRID: Opaque = (232, 229, 220)
BLOCK: Opaque = (236, 231, 216)
BLOCK_EDGE: Opaque = (178, 168, 140)
WALL: Opaque = (58, 66, 82)
OBSTACLE: Opaque = (92, 102, 120)
FIRE_BASE: Colour = (255, 166, 43, 80)
FIRE_BASE_EDGE: Opaque = (222, 122, 0)
ENEMY: Opaque = (208, 36, 48)
ENEMY_DOWN: Opaque = (196, 150, 150)
BYSTANDER: Opaque = (118, 84, 176)
BYSTANDER_DOWN: Opaque = (172, 160, 196)
AGENT: Opaque = (24, 104, 214)
DARK: Opaque = (20, 24, 32)


def blended(ground: Colour, *over: Colour) -> Opaque:
    """The opaque colour that see-through ones leave, each laid over those before it."""
    red, green, blue = ground[:3]
    for colour in over:
        share = colour[3] / 255 if len(colour) == 4 else 1.0
        red, green, blue = (
            round(below * (1 - share) + above * share)
            for below, above in zip((red, green, blue), colour[:3], strict=True)
        )
    return red, green, blue


class Canvas:
    """The floor from `low` to `high` metres on both axes, on `size` x `size` pixels."""

    def __init__(self, low: float, high: float, *, size: int) -> None:
        self._scale = size * FINE / (high - low)  # fine pixels per metre
        self._low, self._high = low, high
        self._image = Image.new("RGB", (size * FINE, size * FINE), FLOOR)
        self._draw = ImageDraw.Draw(self._image, "RGBA")

    def box(self, box: Floats, fill: Colour, *, edge: Colour | None = None) -> None:
        """A box [4]: min x, min z, max x, max z."""
        left, bottom = self._at(box[0], box[1])
        right, top = self._at(box[2], box[3])
        self._draw.rectangle((left, top, right, bottom), fill=fill, outline=edge, width=FINE)

    def disc(
        self, centre: Floats, radius: float, *, fill: Colour | None, edge: Colour | None = None
    ) -> None:
        """A disc about `centre` [2]."""
        x, y = self._at(centre[0], centre[1])
        reach = radius * self._scale
        corners = (x - reach, y - reach, x + reach, y + reach)
        self._draw.ellipse(corners, fill=fill, outline=edge, width=FINE)

    def polygon(self, points: Floats, fill: Colour) -> None:
        """The inside of the corners `points` [N, 2]."""
        self._draw.polygon([self._at(x, z) for x, z in points], fill=fill)

    def line(self, points: Sequence[Floats], colour: Colour, *, width: float = 1.0) -> None:
        """A line through `points` [N, 2], `width` pixels wide."""
        at = [self._at(x, z) for x, z in points]
        self._draw.line(at, fill=colour, width=round(width * FINE))

    def cross(self, centre: Floats, reach: float, colour: Colour) -> None:
        """Two diagonal strokes about `centre` [2]."""
        for slant in (1.0, -1.0):
            arm = np.array([reach, slant * reach])
            self.line([centre - arm, centre + arm], colour, width=1.5)

    def picture(self) -> Image.Image:
        """What was drawn, at the size that was asked for."""
        return self._image.reduce(FINE)

    def _at(self, x: float, z: float) -> tuple[float, float]:
        return (float(x) - self._low) * self._scale, (self._high - float(z)) * self._scale


PAPER, INK = (255, 255, 255), (30, 34, 44)  # of a sheet
NAME, GAP, LETTERS = 20, 8, 12  # pixels: below a picture, between pictures, of the letters


def sheet(
    lines: Sequence[Sequence[tuple[str, Image.Image]]],
    *,
    cell: int,
    head: int = GAP,
    side: int = GAP,
) -> Image.Image:
    """`lines` of pictures of `cell` x `cell` pixels, each above its name.

    Above them `head` pixels stay free, and `side` pixels to their left.
    """
    columns = max((len(line) for line in lines), default=1)
    size = side + columns * (cell + GAP), head + len(lines) * (cell + NAME + GAP)
    whole = Image.new("RGB", size, PAPER)
    write = ImageDraw.Draw(whole)
    for row, line in enumerate(lines):
        for column, (name, picture) in enumerate(line):
            left, top = side + column * (cell + GAP), head + row * (cell + NAME + GAP)
            whole.paste(picture, (left, top))
            text, font = fitted(name, size=LETTERS, room=cell)
            write.text((left, top + cell + 2), text, fill=INK, font=font)
    return whole


def fitted(text: str, *, size: float, room: float) -> tuple[str, Font]:
    """`text` and a font in which it takes at most `room` pixels, smaller or cut where it must."""
    for share in (1.0, 0.9, 0.8):
        font = ImageFont.load_default(max(size * share, 8.0))
        if font.getlength(text) <= room:
            return text, font
    while len(text) > 1 and font.getlength(text) > room:
        text = text[:-2] + "…"
    return text, font
