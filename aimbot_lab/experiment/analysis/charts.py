"""Pages in HTML that stand by themselves, and their charts as SVG text.

Matplotlib draws the charts and is loaded when the first is drawn.
"""

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

from aimbot_lab.foundation.shown_text import html_text, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1000px;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .3rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #e4e4e4;
         vertical-align: top; }
th { font-weight: 600; border-color: #999; } code { background: #f3f3f3; padding: 0 .25rem; }
.scroll { overflow-x: auto; } svg { max-width: 100%; height: auto; } .quiet { color: #666; }
"""
COLOURS = ("#4269d0", "#e8710a", "#2a9d5c", "#b5179e", "#6c757d", "#00a0b0", "#a05a2c", "#c1121f")
WIDTH = 8.0  # inches
MAX_LABEL = 60  # characters
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def page(title: str, parts: Sequence[str]) -> str:
    """A whole document; `parts` are HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html_text(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>{html_text(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def heading(text: str) -> str:
    """The head of a section."""
    return f"<h2>{html_text(text)}</h2>"


def paragraph(text: str, *, quiet: bool = False) -> str:
    """Plain text."""
    return f"<p{' class=quiet' if quiet else ''}>{html_text(text)}</p>"


def html_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows of plain text under their heads."""
    lines = [f"<tr>{''.join(f'<th>{html_text(name)}</th>' for name in head)}</tr>"]
    lines += [
        f"<tr>{''.join(f'<td>{html_text(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    ]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


class Interval(NamedTuple):
    """A labelled value with its interval."""

    label: str
    value: float
    lower: float
    upper: float
    colour: str


class Trail(NamedTuple):
    """A named line through values that have intervals."""

    name: str
    points: Sequence[tuple[float, float, float, float]]  # x, value, lower, upper, by rising x
    colour: str


class StepCurve(NamedTuple):
    """A named curve of shares from 0 to 1 that holds each value until the next."""

    name: str
    points: Sequence[tuple[float, float]]  # by rising x
    colour: str
    marked: Sequence[float] = ()  # x of events


def interval_chart(
    intervals: Sequence[Interval], *, low: float, high: float, zero: float | None
) -> str:
    """An SVG with a row per interval: its label, a bar from end to end, a dot at its value.

    The axis goes from `low` to `high`, with a line at `zero`.
    """
    figure, axes = _new_figure(0.5 + 0.28 * len(intervals))
    if zero is not None:
        axes.axvline(zero, color="#333333", lw=1)
    for row, one in enumerate(intervals):
        axes.hlines(row, one.lower, one.upper, color=one.colour, lw=4, alpha=0.35)
        (dot,) = axes.plot([one.value], [row], "o", color=one.colour)
        dot.set_gid(f"value-{row}")
    axes.set_yticks(range(len(intervals)), [plain_label(one.label) for one in intervals])
    axes.set_ylim(len(intervals) - 0.5, -0.5)
    axes.set_xlim(low, high if high > low else low + 1.0)
    axes.grid(axis="x", alpha=0.3)
    return _svg(figure)


def curve_chart(curves: Sequence[StepCurve], *, x_name: str) -> str:
    """An SVG of all curves over x, with a tick on the axis for each event and a legend above."""
    figure, axes = _new_figure(3.0 + 0.2 * len(curves))
    for number, curve in enumerate(curves):
        steps, shares = [x for x, _ in curve.points], [y for _, y in curve.points]
        label = plain_label(curve.name)
        (line,) = axes.step(steps, shares, where="post", color=curve.colour, label=label)
        line.set_gid(f"curve-{number}")
        axes.plot(curve.marked, [0.0] * len(curve.marked), "|", color=curve.colour, ms=14, mew=2)
    axes.set(xlabel=x_name, ylim=(0, 1.02))
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(_thousands())
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper left", frameon=False)
    return _svg(figure)


def trail_chart(trails: Sequence[Trail], *, x_name: str, y_name: str) -> str:
    """An SVG of all trails over x: a line with a dot and a bar at each value, a legend above."""
    figure, axes = _new_figure(3.6 + 0.2 * len(trails))
    for number, trail in enumerate(trails):
        x, values, lower, upper = zip(*trail.points, strict=True)
        label = plain_label(trail.name)
        axes.vlines(x, lower, upper, color=trail.colour, lw=3, alpha=0.35)
        (line,) = axes.plot(x, values, "o-", color=trail.colour, label=label, ms=4)
        line.set_gid(f"trail-{number}")
    axes.set(xlabel=x_name, ylabel=y_name)
    axes.xaxis.set_major_formatter(_thousands())
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper left", frameon=False)
    return _svg(figure)


def plain_label(label: str) -> str:
    """`label` in one line of at most `MAX_LABEL` characters, which holds no formula."""
    text = one_line(label)
    text = text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"
    return text.replace("$", r"\$")


def _new_figure(height: float) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _thousands() -> Any:
    from matplotlib.ticker import EngFormatter

    return EngFormatter(sep="")


def _svg(figure: "Figure") -> str:
    """The figure as an element of a page, without the head of a file."""
    from matplotlib import rc_context

    file = StringIO()
    # Text stays text, and the same chart is the same bytes.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "aimbot-lab", "font.size": 9.0}):
        figure.savefig(file, format="svg", metadata=_NO_METADATA)
    text = file.getvalue()
    return text[text.index("<svg ") :]
