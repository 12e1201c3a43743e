"""The panel of one agent in a film of a match: health, gun, keys, and what it did so far."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.foundation.scenes import Fighter
from aimbot_lab.foundation.world import Float32Array, Picture
from aimbot_lab.worlds.arena.canvas import Opaque
from aimbot_lab.worlds.duel.core.state import HORIZONTAL, VERTICAL
from aimbot_lab.worlds.duel.film.palette import HURT, INK, PAPER, QUIET, READY, RULE, SHOT

LINES = 24  # of text from top to bottom
MAX_SQUARES = 10  # of health; more are a number alone
ARROWS = {(0, -1): (VERTICAL, 1), (0, 1): (VERTICAL, 2), (1, 0): (HORIZONTAL, 1)}
ARROWS |= {(-1, 0): (HORIZONTAL, 2)}  # way on the picture to column and value of an action
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


class Doings(NamedTuple):
    """What an agent has done so far."""

    action: Float32Array  # [4] of the last decision
    turn: float  # of the mouse, from -1 to 1 of what it can
    shots: int
    hits: int
    wounded: bool  # in the last decision
    begun: bool  # whether any decision was made
    events: Sequence[str]  # the newest last


def panel_picture(
    fighter: Fighter, doings: Doings, *, colour: Opaque, shape: tuple[int, int]
) -> Picture:
    """The panel, [H, W, 3]."""
    panel = _Panel(shape, colour)
    panel.health(fighter, top=1.2)
    panel.gun(fighter, doings, top=4.4)
    panel.keys(doings, top=8.6)
    panel.events(doings, top=15.0)
    return np.array(panel.image)


class _Panel:
    def __init__(self, shape: tuple[int, int], colour: Opaque) -> None:
        height, width = shape
        self.image = Image.new("RGB", (width, height), PAPER)
        self._draw, self._colour = ImageDraw.Draw(self.image), colour
        self._line = height / LINES
        self._left, self._right = self._line * 0.9, width - self._line * 0.9

    def health(self, fighter: Fighter, *, top: float) -> None:
        """A square for each point, filled while it is there."""
        words = f"health {fighter.health} of {fighter.max_health}"
        is_down = fighter.health <= 0
        self._text("DOWN" if is_down else words, top, fill=HURT if is_down else INK)
        squares = min(fighter.max_health, MAX_SQUARES)
        full = round(squares * fighter.health / max(fighter.max_health, 1))
        side = min(1.2 * self._line, (self._right - self._left) / squares - 3)
        y = (top + 0.8) * self._line
        for number in range(squares):
            x = self._left + number * (side + 3)
            fill = self._colour if number < full else PAPER
            self._draw.rectangle((x, y, x + side, y + side), fill=fill, outline=QUIET)

    def gun(self, fighter: Fighter, doings: Doings, *, top: float) -> None:
        """Whether it can shoot, and how often it did."""
        self._rule(top - 0.8)
        if fighter.ready:
            self._lamp("gun ready", top, READY)
        else:
            self._lamp(f"reloads, {fighter.reload_seconds:.1f} s", top, RULE)
        word = "shot" if doings.shots == 1 else "shots"
        met = f"{doings.shots} {word}, {doings.hits} hit" if doings.shots else "no shot yet"
        self._text(met, top + 1.2)
        if fighter.fired:
            self._lamp("HITS" if fighter.hit else "shoots", top + 2.4, SHOT)
        elif not doings.wounded:
            self._lamp("shoots", top + 2.4, RULE, faint=True)
        if doings.wounded:
            place = self._right - 5.6 * self._line if fighter.fired else self._left
            self._lamp("IS HIT", top + 2.4, HURT, left=place)

    def keys(self, doings: Doings, *, top: float) -> None:
        """Which way it walks and turns."""
        self._rule(top - 0.8)
        self._text("walks", top, quiet=True)
        middle = self._left + 2.4 * self._line, (top + 2.9) * self._line
        for way, (column, value) in ARROWS.items():
            pressed = doings.begun and int(doings.action[column]) == value
            self._arrow(middle, way, fill=self._colour if pressed else RULE)
        x = self._left + 5.6 * self._line
        self._text("turns", top, quiet=True, left=x)
        y, half = (top + 2.9) * self._line, (self._right - x) / 2
        self._draw.line((x, y, self._right, y), fill=QUIET)
        end = x + half + doings.turn * half
        low, high = sorted((x + half, end))
        self._draw.rectangle((low, y - 4, high, y + 4), fill=self._colour)
        self._draw.line((x + half, y - 7, x + half, y + 7), fill=INK)

    def events(self, doings: Doings, *, top: float) -> None:
        """What happened to it, the newest last."""
        self._rule(top - 0.8)
        self._text("so far", top, quiet=True)
        for number, words in enumerate(doings.events[-6:]):
            self._text(words, top + 1.2 * (number + 1))

    def _arrow(self, middle: tuple[float, float], way: tuple[int, int], *, fill: Opaque) -> None:
        line, (right, down) = self._line, way
        x, y = middle[0] + 1.3 * right * line, middle[1] + 1.3 * down * line
        tip = x + 0.6 * right * line, y + 0.6 * down * line
        base = x - 0.5 * right * line, y - 0.5 * down * line
        side = 0.6 * down * line, 0.6 * right * line
        corners = [tip, (base[0] - side[0], base[1] - side[1])]
        self._draw.polygon([*corners, (base[0] + side[0], base[1] + side[1])], fill=fill)

    def _lamp(
        self,
        words: str,
        top: float,
        fill: Opaque,
        *,
        left: float | None = None,
        faint: bool = False,
    ) -> None:
        x, y, radius = self._left if left is None else left, top * self._line, 0.42 * self._line
        self._draw.ellipse((x, y - radius, x + 2 * radius, y + radius), fill=fill, outline=QUIET)
        self._text(words, top, left=x + 1.3 * self._line, quiet=faint)

    def _text(
        self,
        words: str,
        top: float,
        *,
        left: float | None = None,
        quiet: bool = False,
        fill: Opaque = INK,
    ) -> None:
        x = self._left if left is None else left
        text, font = fitted(words, size=0.82 * self._line, room=self._right - x)
        ink = QUIET if quiet else fill
        self._draw.text((x, top * self._line), text, fill=ink, font=font, anchor="lm")

    def _rule(self, top: float) -> None:
        y = top * self._line
        self._draw.line((self._left, y, self._right, y), fill=RULE)


def fitted(text: str, *, size: float, room: float) -> tuple[str, Font]:
    """`text` and a font in which it takes at most `room` pixels, smaller or cut where it must."""
    for share in (1.0, 0.9, 0.8):
        font = ImageFont.load_default(max(size * share, 8.0))
        if font.getlength(text) <= room:
            return text, font
    while len(text) > 1 and font.getlength(text) > room:
        text = text[:-2] + "…"
    return text, font
