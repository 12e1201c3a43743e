"""Charts as SVG text, to be put into a page: no library, no script, no file beside it."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from aimbot_lab.foundation.shown_text import html_text

COLOURS = ("#4269d0", "#e8710a", "#2a9d5c", "#b5179e", "#6c757d", "#00a0b0", "#a05a2c", "#c1121f")


class Scale(NamedTuple):
    """Values from `low` to `high`, drawn from pixel `start` to pixel `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of `value`; beyond the ends it stays at the end."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)

    def ticks(self, count: int = 5) -> list[float]:
        """About `count` round values between both ends."""
        rough = (self.high - self.low) / max(count, 1) or 1.0
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


class Mark(NamedTuple):
    """A value with its interval."""

    label: str
    value: float
    lower: float
    upper: float
    colour: str


class Line(NamedTuple):
    """A curve that holds each value until the next, with a name."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    marked: Sequence[float] = ()  # x where something happened


def interval_chart(marks: Sequence[Mark], *, low: float, high: float, zero: float | None) -> str:
    """One row per mark: its label, its interval as a bar, its value as a dot."""
    left, width, row = 110, 640, 26
    height = row * len(marks) + 34
    x = Scale(low, high, left, width - 20)
    parts = [_x_axis(x, top=6, bottom=height - 28)]
    if zero is not None:
        parts.append(_rule(x(zero), 6, height - 28, "#333"))
    for number, mark in enumerate(marks):
        y = 6 + row * (number + 0.5)
        parts.append(_text(left - 10, y + 4, mark.label, anchor="end"))
        parts.append(
            f'<line x1="{x(mark.lower):.1f}" x2="{x(mark.upper):.1f}" y1="{y}" y2="{y}" '
            f'stroke="{mark.colour}" stroke-width="4" stroke-opacity="0.35"/>'
            f'<circle cx="{x(mark.value):.1f}" cy="{y}" r="4.5" fill="{mark.colour}">'
            f"<title>{html_text(mark.label)}: {mark.value:.3f} "
            f"[{mark.lower:.3f}, {mark.upper:.3f}]</title></circle>"
        )
    return _svg(width, height, parts)


def line_chart(lines: Sequence[Line], *, x_name: str) -> str:
    """Shares from 0 to 1 over x, a legend above, and a tick below for what is marked."""
    width, height, left, top = 760, 300, 46, 14 + 18 * len(lines)
    bottom = height + top - 40
    last = max((line.points[-1][0] for line in lines if line.points), default=1.0)
    x, y = Scale(0.0, last, left, width - 16), Scale(0.0, 1.0, bottom, top)
    parts = [_x_axis(x, top=top, bottom=bottom)]
    for value in y.ticks():
        parts.append(_text(left - 8, y(value) + 4, f"{value:.1f}", anchor="end"))
        parts.append(
            f'<line x1="{left}" x2="{width - 16}" y1="{y(value):.1f}" y2="{y(value):.1f}" '
            'stroke="#e4e4e4"/>'
        )
    for number, line in enumerate(lines):
        parts.append(f'<circle cx="{left + 6}" cy="{9 + 18 * number}" r="5" fill="{line.colour}"/>')
        parts.append(_text(left + 18, 13 + 18 * number, line.name))
        parts.append(_stairs(line, x, y))
    parts.append(_text((left + width) / 2, bottom + 36, x_name, anchor="middle"))
    return _svg(width, int(bottom + 44), parts)


def _stairs(line: Line, x: Scale, y: Scale) -> str:
    if not line.points:
        return ""
    corners = [f"M{x(line.points[0][0]):.1f},{y(line.points[0][1]):.1f}"]
    corners += [f"H{x(b[0]):.1f}V{y(b[1]):.1f}" for _, b in pairwise(line.points)]
    marks = "".join(
        f'<path d="M{x(step):.1f},{y.start:.1f}v-10" stroke="{line.colour}" stroke-width="2"/>'
        for step in line.marked
    )
    return (
        f'<path d="{"".join(corners)}" fill="none" stroke="{line.colour}" stroke-width="1.6"/>'
        f"{marks}"
    )


def _x_axis(x: Scale, *, top: float, bottom: float) -> str:
    parts = []
    for value in x.ticks():
        parts.append(_rule(x(value), top, bottom, "#e4e4e4"))
        parts.append(_text(x(value), bottom + 18, short_number(value), anchor="middle"))
    return "".join(parts)


def short_number(value: float) -> str:
    """A number as an axis shows it."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{round(value, 6):g}"


def _rule(x: float, top: float, bottom: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html_text(text)}</text>'


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'role="img" font-size="12" fill="#333">{"".join(parts)}</svg>'
    )
