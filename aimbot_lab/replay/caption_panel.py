"""The panel beside the picture of a row: cell, action, rewards, result."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.foundation.replays import ArrowKeys, Colour, Control, Gauge, Indicator

Place = tuple[float, float]

PAPER: Colour = (252, 252, 250)
INK: Colour = (20, 24, 32)
FAINT: Colour = (128, 134, 146)
RULE: Colour = (222, 222, 216)
GAIN: Colour = (34, 139, 84)
LOST: Colour = (208, 36, 48)
PRESSED: Colour = (24, 104, 214)
FIRE: Colour = (255, 120, 0)
COLOURS = (PAPER, INK, FAINT, RULE, GAIN, LOST)
"""What panels hold, where colours are few."""
BANNERS = {WIN: GAIN, DRAW: FAINT, LOSS: LOST}
SMALLEST = 0.7  # of a text's size, before it is cut
MIN_PIXELS = 7.0  # of a text's height
MIN_LINES = 24  # of text from top to bottom: its size follows
ACTION_TOP, REWARDS_TOP, RESULT_TOP = 4.6, 10.2, MIN_LINES - 2.8  # lines from the top
KEYS_WIDTH = 6.4  # lines that the arrows take from left to right
MAX_PER_CONTROL = 2.4  # lines
MAX_PER_TERM = 1.9  # lines
BAR_BELOW = 0.45  # of a term's room is from its name down to its bar
BAR_HALF, BAR_TICK = 0.2, 0.4  # lines that a bar and its zero reach up and down


class PanelText(NamedTuple):
    """What a panel says."""

    title: str  # for example the lesson
    cell: str  # target and difficulty
    goal: str  # what is to be done, and what is left of it
    controls: Sequence[Control]  # what the agent does
    names: Sequence[str]  # [T] of the reward terms
    terms: npt.NDArray[np.float64]  # [T] sum of each reward term so far
    earned: npt.NDArray[np.float64]  # [T] what this decision gave
    scale: npt.NDArray[np.float64]  # [T] 0 for a term that is not shown, else a full bar's value
    result: str | None
    outcome: int
    ending: int | None = None  # the reward term that the result alone gives
    player: str = ""  # which agent, and how its actions were drawn


class Panel:
    """A panel of `width` x `height` pixels that shows `content`."""

    def __init__(self, width: int, height: int, content: PanelText) -> None:
        self._content = content
        self._line = height / MIN_LINES
        self._left, self._right = self._line * 0.8, width - self._line * 0.8
        self.picture = Image.new("RGB", (width, height), PAPER)
        self._draw = ImageDraw.Draw(self.picture)
        self._head()
        self._controls(top=ACTION_TOP)
        self._rewards(top=REWARDS_TOP)
        self._result(top=RESULT_TOP)

    def _text(
        self, at: Place, text: str, *, size: float = 0.78, fill: Colour = INK, anchor: str = "lm"
    ) -> None:
        """`text` at (pixels from the left, lines from the top), made to fit the panel."""
        room = self._right - at[0] if anchor[0] == "l" else self._right
        text, font = fitted(text, size=self._line * size, room=room)
        place = at[0], at[1] * self._line
        self._draw.text(place, text, fill=fill, font=font, anchor=anchor)

    def _head(self) -> None:
        content = self._content
        self._text((self._left, 1.0), content.title, size=0.92)
        self._text((self._left, 2.1), content.cell)
        self._text((self._left, 3.0), content.goal, fill=FAINT)
        self._text((self._left, 3.9), content.player, fill=FAINT)

    def _controls(self, top: float) -> None:
        """Arrow keys on the left, all else below each other."""
        self._rule(top)
        controls = self._content.controls
        keys = [control for control in controls if isinstance(control, ArrowKeys)]
        others = [control for control in controls if not isinstance(control, ArrowKeys)]
        if keys:
            self._keys(keys[0], (self._left + 2.6 * self._line, top + 2.9))
        left = self._left + (KEYS_WIDTH * self._line if keys else 0.0)
        first = top + 1.6
        room = REWARDS_TOP - 1.6 - first  # for all but the last
        each = min(MAX_PER_CONTROL, room / max(len(others) - 1, 1))
        for place, control in enumerate(others):
            at = left, first + each * place
            if isinstance(control, Gauge):
                self._gauge(control, at)
            elif isinstance(control, Indicator):
                self._indicator(control, at)
            else:
                shown = "" if control.number is None else f" {control.number}"
                self._text(at, f"{control.name}{shown}")

    def _keys(self, keys: ArrowKeys, middle: Place) -> None:
        self._key(middle, (0, -1), pressed=keys.up)
        self._key(middle, (0, 1), pressed=keys.down)
        self._key(middle, (-1, 0), pressed=keys.left)
        self._key(middle, (1, 0), pressed=keys.right)

    def _key(self, middle: Place, way: tuple[int, int], *, pressed: bool) -> None:
        line, (right, down) = self._line, way
        x, y = middle[0] + 1.3 * right * line, (middle[1] + 1.3 * down) * line
        tip = x + 0.6 * right * line, y + 0.6 * down * line
        base = x - 0.5 * right * line, y - 0.5 * down * line
        side = 0.6 * down * line, 0.6 * right * line
        corners = [
            tip,
            (base[0] - side[0], base[1] - side[1]),
            (base[0] + side[0], base[1] + side[1]),
        ]
        self._draw.polygon(corners, fill=PRESSED if pressed else RULE)

    def _gauge(self, gauge: Gauge, at: Place) -> None:
        (left, top), right = at, self._right
        middle, reach = (left + right) / 2, (right - left) / 2
        self._text((left, top), gauge.name, fill=FAINT)
        y = (top + 1.0) * self._line
        self._draw.line((left, y, right, y), fill=RULE)
        share = max(-1.0, min(1.0, gauge.share))
        self._bar((middle, top + 1.0), share * reach, colour=PRESSED)

    def _indicator(self, indicator: Indicator, at: Place) -> None:
        left, y = at[0], at[1] * self._line
        radius = 0.45 * self._line
        box = (left, y - radius, left + 2 * radius, y + radius)
        self._draw.ellipse(box, fill=FIRE if indicator.on else RULE)
        self._text(
            (left + 1.4 * self._line, at[1]), indicator.name, fill=INK if indicator.on else FAINT
        )

    def _rewards(self, top: float) -> None:
        content = self._content
        self._rule(top)
        self._text((self._left, top + 0.9), "reward so far", fill=FAINT)
        shown = [term for term in range(len(content.names)) if content.scale[term] > 0]
        first = top + 2.1
        room = RESULT_TOP - BAR_TICK - first  # for all names but the last, and that one's bar
        per_term = min(MAX_PER_TERM, room / max(len(shown) - 1 + BAR_BELOW, 1))
        for place, term in enumerate(shown):
            self._reward(term, first + per_term * place, per_term=per_term)

    def _reward(self, term: int, top: float, *, per_term: float) -> None:
        content = self._content
        value = float(content.terms[term])
        colour = GAIN if value >= 0 else LOST
        name = content.names[term].replace("_", " ")
        # A term that was just earned is drawn in full ink.
        self._text((self._left, top), name, fill=INK if content.earned[term] else FAINT)
        self._text((self._right, top), f"{value:+.0f}", fill=colour, anchor="rm")
        middle = (self._left + self._right) / 2
        reach = (self._right - self._left) / 2
        share = max(-1.0, min(1.0, value / float(content.scale[term])))
        self._bar((middle, top + BAR_BELOW * per_term), share * reach, colour=colour)

    def _bar(self, start: Place, length: float, *, colour: Colour) -> None:
        x, y, half = start[0], start[1] * self._line, BAR_HALF * self._line
        low, high, tick = *sorted((x, x + length)), BAR_TICK * self._line
        if high - low >= 0.5:
            self._draw.rectangle((low, y - half, high, y + half), fill=colour)
        self._draw.line((x, y - tick, x, y + tick), fill=FAINT)

    def _result(self, top: float) -> None:
        content = self._content
        self._rule(top)
        total = f"total {content.terms.sum():+,.0f}"
        if content.result is None:
            self._text((self._left, top + 1.4), total, fill=FAINT)
            return
        box = (0, top * self._line, self.picture.width, self.picture.height)
        self._draw.rectangle(box, fill=BANNERS[content.outcome])
        self._text((self._left, top + 1.0), content.result, size=0.95, fill=PAPER)
        if content.ending is not None:
            earned = float(content.terms[content.ending])
            total = f"{content.names[content.ending]} {earned:+,.0f}, {total}"
        self._text((self._left, top + 2.1), total, size=0.7, fill=PAPER)

    def _rule(self, top: float) -> None:
        y = top * self._line
        self._draw.line((self._left, y, self._right, y), fill=RULE)


def fitted(
    text: str, *, size: float, room: float
) -> tuple[str, ImageFont.FreeTypeFont | ImageFont.ImageFont]:
    """`text` and a font in which it takes at most `room` pixels.

    The font is `size` pixels high, or smaller down to `SMALLEST` of that; then text is cut.
    """
    for share in (1.0, 0.9, 0.8, SMALLEST):
        font = ImageFont.load_default(max(size * share, MIN_PIXELS))
        if font.getlength(text) <= room:
            return text, font
    while len(text) > 1 and font.getlength(text) > room:
        text = text[:-2] + "…"
    return text, font


def bar_scale(totals: npt.NDArray[np.float64], endings: Sequence[int]) -> npt.NDArray[np.float64]:
    """Value [T] of a full bar for each term of an episode that ends with the sums `totals` [T].

    One scale for all that are shown; 0 for what earned nothing, and for the terms `endings`, which
    the result shows: their bars would dwarf all others.
    """
    sizes = np.abs(totals)
    sizes[list(endings)] = 0.0
    return np.where(sizes > 0, sizes.max(initial=0.0), 0.0)
