"""A game as the text of a terminal: the cells, two to a character, and a panel beside them."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aimbot_lab.foundation.shown_text import one_line

if TYPE_CHECKING:
    from aimbot_lab.foundation.terminal_play import GameView
    from aimbot_lab.replay.play_session import PlaySession

MIN_COLUMNS, MIN_LINES = 40, 16
PANEL = 23  # columns
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
HELP = ("arrows, m fog", "r again, n new, q ends")


def screen_text(session: "PlaySession", size: os.terminal_size) -> str:
    """The screen of `size`, from its upper left corner on."""
    columns, lines = size
    if columns < MIN_COLUMNS or lines < MIN_LINES:
        text = [f"too small: {MIN_COLUMNS} x {MIN_LINES}"[: max(columns - 1, 0)]]
    else:
        text = _with_panel(session, columns, lines)
    return HOME + f"{CLEAR_LINE}\n".join(text) + CLEAR_LINE + CLEAR_BELOW


def _with_panel(session: "PlaySession", columns: int, lines: int) -> list[str]:
    view = session.view()
    shown, width = _cells(view, columns - PANEL - 1, lines)
    panel = [*view.panel, "", *HELP]
    if session.over:
        result, numbers = session.result_lines()
        fields = result.replace("|difficulty=", " ").split("|")[2:]
        panel = [*fields, numbers.rpartition(", ")[2], "", *HELP]
    blank = " " * width
    height = min(max(len(shown), len(panel)), lines)
    return [
        f"{shown[k] if k < len(shown) else blank} "
        f"{one_line(panel[k])[:PANEL] if k < len(panel) else ''}"
        for k in range(height)
    ]


def _cells(view: "GameView", columns: int, lines: int) -> tuple[Sequence[str], int]:
    """The part of the cells around the focus for which there is room, and its width."""
    import numpy as np

    from aimbot_lab.replay.terminal import half_blocks

    height, width, _ = view.picture.shape
    per_character = 1 if os.environ.get("NO_COLOR") else 2
    wide = min(width, columns)
    high = min(height, per_character * lines)
    left = _first(view.focus[1], wide, width)
    top = _first(view.focus[0], high, height)
    if per_character == 1:
        return [row[left : left + wide] for row in view.signs[top : top + high]], wide
    part = np.ascontiguousarray(view.picture[top : top + high, left : left + wide])
    if high % 2:
        part = part[:-1]
    true_colour = os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
    return half_blocks(part, true_colour=true_colour), wide


def _first(focus: int, shown: int, total: int) -> int:
    """The first of `shown` of `total` places, with `focus` as near to the middle as can be."""
    return max(0, min(focus - shown // 2, total - shown))
