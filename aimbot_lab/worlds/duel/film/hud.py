"""What is drawn over a view through the eyes: gun, crosshair, a hit that lands, a hit taken."""

import numpy as np
from PIL import Image, ImageDraw

from aimbot_lab.foundation.scenes import Fighter
from aimbot_lab.foundation.world import Picture
from aimbot_lab.worlds.duel.film.palette import FLASH, HURT, SHOT, WHITE
from aimbot_lab.worlds.duel.film.side_panel import fitted

BLACK, GUN, SHINE, STOCK = (0, 0, 0), (43, 49, 56), (74, 83, 94), (29, 34, 39)
GREY = (170, 170, 170)


def draw_hud(picture: Picture, fighter: Fighter, *, wounded: bool) -> Picture:
    """`picture` [H, W, 3] of what `fighter` sees, with its gun and what the last decision brought.

    `wounded`: whether it was hit.
    """
    image = Image.fromarray(picture)
    ink = ImageDraw.Draw(image)
    (width, height), unit = image.size, image.size[1] / 270
    if fighter.health > 0:
        _draw_gun(ink, width / 2, height, unit=unit, fired=fighter.fired)
    _draw_crosshair(ink, fighter, (width / 2, height / 2), unit=unit)
    if wounded:
        ink.rectangle((0, 0, width - 1, height - 1), outline=HURT, width=round(9 * unit))
    told = "DOWN" if fighter.health <= 0 else "IS HIT" if wounded else ""
    if told:
        _tell(ink, told, (width / 2, 0.16 * height), size=22 * unit, fill=HURT)
    elif fighter.hit:
        _tell(ink, "HIT", (width / 2, 0.16 * height), size=22 * unit, fill=SHOT)
    return np.array(image)


def _draw_gun(
    ink: ImageDraw.ImageDraw, x: float, bottom: float, *, unit: float, fired: bool
) -> None:
    y = bottom + (7 * unit if fired else 0.0)
    if fired:
        reach, top = 22 * unit, y - 60 * unit
        ink.ellipse((x - reach, top - reach, x + reach, top + reach), fill=FLASH)
    ink.rectangle((x - 7 * unit, y - 56 * unit, x + 7 * unit, bottom), fill=GUN)
    ink.rectangle((x - 4 * unit, y - 56 * unit, x, bottom), fill=SHINE)
    ink.rectangle((x - 17 * unit, y - 21 * unit, x + 17 * unit, bottom), fill=STOCK)


def _draw_crosshair(
    ink: ImageDraw.ImageDraw, fighter: Fighter, at: tuple[float, float], *, unit: float
) -> None:
    """Four strokes, grey while the gun is not ready; diagonal ones where a shot has hit."""
    x, y = at
    for shift, colour in ((1, BLACK), (0, WHITE if fighter.ready else GREY)):
        for low, high in ((-12 * unit, -4 * unit), (4 * unit, 12 * unit)):
            ink.line((x + low + shift, y + shift, x + high + shift, y + shift), colour, 2)
            ink.line((x + shift, y + low + shift, x + shift, y + high + shift), colour, 2)
    if fighter.hit:
        for a, b in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
            near, far = 8 * unit, 20 * unit
            ends = (x + near * a, y + near * b, x + far * a, y + far * b)
            ink.line(ends, SHOT, round(4 * unit))


def _tell(
    ink: ImageDraw.ImageDraw,
    words: str,
    at: tuple[float, float],
    *,
    size: float,
    fill: tuple[int, int, int],
) -> None:
    text, font = fitted(words, size=size, room=1e9)
    edge = max(round(size / 8), 2)
    ink.text(at, text, fill, font, anchor="mm", stroke_width=edge, stroke_fill=BLACK)
