"""The panel beside the picture of an arena: cell, action, rewards, result."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.worlds.arena.core.state import LOSE, REWARD_TERMS, WIN

Colour = tuple[int, int, int]
Place = tuple[float, float]

PAPER: Colour = (252, 252, 250)
INK: Colour = (20, 24, 32)
FAINT: Colour = (128, 134, 146)
RULE: Colour = (222, 222, 216)
GAIN: Colour = (34, 139, 84)
LOSS: Colour = (208, 36, 48)
PRESSED: Colour = (24, 104, 214)
FIRE: Colour = (255, 120, 0)
ENDINGS = (WIN, LOSE)  # shown by the result; their bars would dwarf all others
SMALLEST = 0.7  # of a text's size, before it is cut
MIN_PIXELS = 7.0  # of a text's height
MIN_LINES = 24  # of text from top to bottom: its size follows
REWARDS_TOP, RESULT_TOP = 10.2, MIN_LINES - 2.8  # lines from the top
MAX_PER_TERM = 1.9  # lines
BAR_BELOW = 0.45  # of a term's room is from its name down to its bar
BAR_HALF, BAR_TICK = 0.2, 0.4  # lines that a bar and its zero reach up and down


class PanelText(NamedTuple):
    """What a panel says."""

    title: str  # for example the lesson
    cell: str  # target and difficulty
    goal: str  # what is to be done, and what is left of it
    action: npt.NDArray[np.float32] | None  # [4]
    fired: bool
    mouse_limit: float
    terms: npt.NDArray[np.float64]  # [T] sum of each reward term so far
    earned: npt.NDArray[np.float64]  # [T] what this decision gave
    scale: npt.NDArray[np.float64]  # [T] 0 for a term that is not shown, else a full bar's value
    result: str | None
    won: bool
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
        self._action(top=4.6)
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

    def _action(self, top: float) -> None:
        """Four keys, a needle for the mouse, and a light that shows a shot."""
        self._rule(top)
        action = self._content.action
        vertical, horizontal = (0, 0) if action is None else (int(action[0]), int(action[1]))
        middle = self._left + 2.6 * self._line, top + 2.9
        for right, down, pressed in (
            (0, -1, vertical == 1),
            (0, 1, vertical == 2),
            (-1, 0, horizontal == 1),
            (1, 0, horizontal == 2),
        ):
            self._key(middle, (right, down), pressed=pressed)
        self._turn(0.0 if action is None else float(action[3]), top=top + 1.6)
        self._shot(top=top + 4.0)

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

    def _turn(self, mouse: float, top: float) -> None:
        left, right = self._left + 6.4 * self._line, self._right
        middle, reach = (left + right) / 2, (right - left) / 2
        share = max(-1.0, min(1.0, mouse / self._content.mouse_limit))
        self._text((left, top), "turns", fill=FAINT)
        at = (top + 1.0) * self._line
        self._draw.line((left, at, right, at), fill=RULE)
        self._bar((middle, top + 1.0), share * reach, colour=PRESSED)

    def _shot(self, top: float) -> None:
        left, y = self._left + 6.4 * self._line, top * self._line
        radius = 0.45 * self._line
        box = (left, y - radius, left + 2 * radius, y + radius)
        self._draw.ellipse(box, fill=FIRE if self._content.fired else RULE)
        colour = INK if self._content.fired else FAINT
        self._text((left + 1.4 * self._line, top), "shoots", fill=colour)

    def _rewards(self, top: float) -> None:
        content = self._content
        self._rule(top)
        self._text((self._left, top + 0.9), "reward so far", fill=FAINT)
        shown = [term for term in range(len(REWARD_TERMS)) if content.scale[term] > 0]
        first = top + 2.1
        room = RESULT_TOP - BAR_TICK - first  # for all names but the last, and that one's bar
        per_term = min(MAX_PER_TERM, room / max(len(shown) - 1 + BAR_BELOW, 1))
        for place, term in enumerate(shown):
            self._reward(term, first + per_term * place, per_term=per_term)

    def _reward(self, term: int, top: float, *, per_term: float) -> None:
        content = self._content
        value = float(content.terms[term])
        colour = GAIN if value >= 0 else LOSS
        name = REWARD_TERMS[term].replace("_", " ")
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
        self._draw.rectangle(box, fill=GAIN if content.won else LOSS)
        self._text((self._left, top + 1.0), content.result, size=0.95, fill=PAPER)
        ending = WIN if content.won else LOSE
        earned = f"{REWARD_TERMS[ending]} {float(content.terms[ending]):+,.0f}, {total}"
        self._text((self._left, top + 2.1), earned, size=0.7, fill=PAPER)

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


def bar_scale(totals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Value [T] of a full bar for each term of an episode that ends with the sums `totals` [T].

    One scale for all that are shown; 0 for what earned nothing, and for winning and losing.
    """
    sizes = np.abs(totals)
    sizes[list(ENDINGS)] = 0.0
    return np.where(sizes > 0, sizes.max(initial=0.0), 0.0)
