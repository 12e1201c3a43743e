"""Learning curves of runs, charts as SVG text, and pages in HTML that need no other file.

Matplotlib draws the charts and is loaded when the first is drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import takewhile
from math import isfinite, nan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import student_interval
from aimbot_lab.foundation.shown_text import html_text, one_line
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import metric_history
from aimbot_lab.tracking.tracker import MetricPoint, RunSummary
from aimbot_lab.worlds.registry import knows_spec, spec_of

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
STEPS_NAME = "environment steps"
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


def curve_chart(curves: Sequence[StepCurve], *, is_rate: bool = True) -> str:
    """An SVG of all curves over steps: a tick on the axis for each event, a legend above."""
    figure, axes = _new_figure(3.0 + 0.2 * len(curves))
    for number, curve in enumerate(curves):
        steps, shares = [x for x, _ in curve.points], [y for _, y in curve.points]
        label = plain_label(curve.name)
        (line,) = axes.step(steps, shares, where="post", color=curve.colour, label=label)
        line.set_gid(f"curve-{number}")
        axes.plot(curve.marked, [0.0] * len(curve.marked), "|", color=curve.colour, ms=14, mew=2)
    axes.set(xlabel=f"{STEPS_NAME}; ticks: a lesson was passed")
    if is_rate:
        axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(_thousands())
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper left", frameon=False)
    return _svg(figure)


def trail_chart(trails: Sequence[Trail]) -> str:
    """An SVG of ratings over steps: a line with a dot and a bar at each value, a legend above."""
    figure, axes = _new_figure(3.6 + 0.2 * len(trails))
    for number, trail in enumerate(trails):
        x, values, lower, upper = zip(*trail.points, strict=True)
        label = plain_label(trail.name)
        axes.vlines(x, lower, upper, color=trail.colour, lw=3, alpha=0.35)
        (line,) = axes.plot(x, values, "o-", color=trail.colour, label=label, ms=4)
        line.set_gid(f"trail-{number}")
    axes.set(xlabel=STEPS_NAME, ylabel="rating")
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


Scores = npt.NDArray[np.float64]  # [R, C]
Statistic = Callable[..., float]  # of as many arrays of scores as there are configurations
RESAMPLES = 2_000
LEVEL = 0.95


class Estimate(NamedTuple):
    """A value with its interval over runs; NaN where they do not vary."""

    value: float
    lower: float
    upper: float


def mean(scores: Scores) -> Estimate:
    """The mean of scores [R, C], with Student's interval at 95 % over the means of runs.

    NaN for its ends where there is a single run, or all are alike.
    """
    found = student_interval(scores.mean(axis=1).tolist())
    return Estimate(*(nan if one is None else one for one in found))


def interquartile_mean(scores: Scores) -> float:
    """The mean of the middle half of all scores [R, C]: a quarter is cut at each end.

    The cut is rounded down to whole scores: of fewer than four none is cut.
    """
    ordered = np.sort(scores, axis=None)
    cut = len(ordered) // 4
    return float(np.mean(ordered[cut : len(ordered) - cut]))


def probability_of_improvement(scores: Scores, others: Scores) -> float:
    """How probable it is that a training of `scores` [R, C] beats one of `others` [S, C].

    In each cell the share of all R x S pairs that are won, half of those that are even (the
    Mann-Whitney U statistic over R S), then the mean over cells.
    """
    pairs = scores[:, None, :] - others[None, :, :]  # [R, S, C]
    return float(np.mean((np.sign(pairs) + 1) / 2))


def estimate(statistic: Statistic, *groups: Scores) -> Estimate:
    """`statistic` of the groups [R, C], with its bootstrap percentile interval at 95 %.

    Each of RESAMPLES draws as many runs of each group as it has, with replacement. A
    single run in every group says nothing about others, nor do runs that are all alike:
    the interval is NaN.
    """
    value = statistic(*groups)
    if all(len(scores) < 2 for scores in groups):
        return Estimate(value, nan, nan)
    rng = np.random.default_rng(0)
    drawn = [
        statistic(*(scores[rng.integers(len(scores), size=len(scores))] for scores in groups))
        for _ in range(RESAMPLES)
    ]
    lower, upper = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    if lower == upper:
        return Estimate(value, nan, nan)
    return Estimate(value, float(lower), float(upper))


MEASURES = names.EVAL_WIN_RATE, names.LEARNING_WIN_RATE, names.LESSON_WIN_RATE  # the best first
RETURNS = names.EVAL_RETURN, names.EPISODE_RETURN  # where nothing can be won
MIN_POINTS = 2
Values = npt.NDArray[np.float64]
POINTS = 60  # of a mean over seeds
SUFFIXES = (".png", ".svg", ".pdf")
AXIS: Mapping[str, str] = MappingProxyType(
    {
        names.EVAL_WIN_RATE: "win rate in evaluation",
        names.LEARNING_WIN_RATE: "win rate while learning",
        names.LESSON_WIN_RATE: "win rate in the lesson",
        names.EVAL_RETURN: "mean return in evaluation",
        names.EPISODE_RETURN: "mean return while learning",
    }
)


@dataclass(frozen=True)
class LessonPassed:
    """A lesson and when it was passed.

    `step` is that of `LessonReport.ended_at_step`; `seconds` end where the update after it began.
    """

    name: str
    step: int | None  # environment steps; None: it was not
    seconds: float | None  # since the run began, pauses included


@dataclass(frozen=True)
class LearningCurve:
    """A run's way through its lessons."""

    points: tuple[tuple[int, float], ...]  # environment steps, win rate or mean return then
    lessons: tuple[LessonPassed, ...]  # of the whole curriculum, which may have none
    measure: str = names.LEARNING_WIN_RATE  # what the points are of, by its tracked name


def read_curves(
    runs: Sequence[tuple[RunSummary, CurriculumFile]],
    *,
    data_folder: DataFolder,
    tracking_uri: str | None = None,
) -> tuple[LearningCurve, ...]:
    """The curves that `runs` recorded, all of the first of `MEASURES` of which all have a curve.

    Of `RETURNS`, where one of them can't win.
    Raises StoreError where the store can't be used.
    """

    def histories(key: str) -> list[list[MetricPoint]]:
        return [
            metric_history(data_folder, run.run_id, key=key, tracking_uri=tracking_uri)
            for run, _ in runs
        ]

    wins = all(not knows_spec(one.env) or spec_of(one.env).has_wins for _, one in runs)
    measures = MEASURES if wins else RETURNS
    found = ((measure, histories(measure)) for measure in measures)
    whole = (one for one in found if all(len(rates) >= MIN_POINTS for rates in one[1]))
    measure, curves = next(whole, (measures[-1], histories(measures[-1])))
    numbers = histories(names.LESSON_NUMBER)
    return tuple(
        LearningCurve(
            tuple((point.step, point.value) for point in rates if isfinite(point.value)),
            lessons_passed(run, config, lesson_numbers) if config.has_lessons else (),
            measure,
        )
        for (run, config), rates, lesson_numbers in zip(runs, curves, numbers, strict=True)
    )


def lessons_passed(
    run: RunSummary, config: CurriculumFile, numbers: Sequence[MetricPoint]
) -> tuple[LessonPassed, ...]:
    """When each lesson was passed, from the recorded `numbers` of the lesson in force.

    One that was begun again later counts from its last passing. The last lesson is passed where
    the run reached its goal and that asked for something.
    """
    began = run.started.timestamp()
    asks = config.lessons[-1].completion_criteria is not None
    ended = numbers[-1:] if run.status == "FINISHED" and asks else []
    passed = []
    for number, lesson in enumerate(config.lessons, start=1):
        later = _since_last_above(number, numbers)
        first = next(iter(later[-1:] or (ended if number == len(config.lessons) else [])), None)
        passed.append(
            LessonPassed(lesson.name, None, None)
            if first is None
            else LessonPassed(lesson.name, first.step, first.time_ms / 1000 - began)
        )
    return tuple(passed)


def _since_last_above(number: int, numbers: Sequence[MetricPoint]) -> list[MetricPoint]:
    """The last of `numbers`, newest first, as far back as all lie above `number`."""
    return list(takewhile(lambda point: point.value > number, reversed(numbers)))


def common_steps(curves: Sequence[LearningCurve]) -> tuple[int, int] | None:
    """The first and last step between which all curves are known; None without a common range."""
    if not all(curve.points for curve in curves):
        return None
    low = max(curve.points[0][0] for curve in curves)
    high = min(curve.points[-1][0] for curve in curves)
    return (low, high) if low < high else None


def mean_win_rate(curve: LearningCurve, low: int, high: int) -> float:
    """The area under the curve from step `low` to `high`, divided by its width.

    A value holds from its step until the next. Both steps must lie where the curve is known.
    """
    area, last = 0.0, low
    rate = curve.points[0][1]
    for step, win_rate in curve.points:
        if step > low:
            area += rate * (min(step, high) - last)
            last = min(step, high)
        rate = win_rate
    return (area + rate * (high - last)) / (high - low)


def mean_curve(
    curves: Sequence[LearningCurve], *, points: int = POINTS
) -> tuple[Values, Values, Values, Values] | None:
    """(steps, mean, lower, upper), each [P], of `curves`, which are lines between their points.

    Over the steps that all have that have any; None where there are none. The interval is
    Student's over runs at 95 %, within 0 to 1 for win rates, NaN for a single run.
    """
    known = [curve for curve in curves if curve.points]
    low = max((curve.points[0][0] for curve in known), default=0)
    high = min((curve.points[-1][0] for curve in known), default=0)
    if low >= high:
        return None
    steps = np.linspace(low, high, points)
    lines = (np.array(curve.points, np.float64) for curve in known)
    rates = np.array([np.interp(steps, line[:, 0], line[:, 1]) for line in lines])
    middle, lower, upper = np.array([mean(rates[:, [point]]) for point in range(points)]).T
    if known[0].measure in MEASURES:
        lower, upper = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    return steps, middle, lower, upper


def draw_curves(groups: Mapping[str, Sequence[LearningCurve]], output: Path) -> None:
    """Write the picture of all `groups` to `output`; its ending says of what kind.

    Raises OSError where it can't be written.
    """
    figure, axes = _new_figure(4.5)
    for number, (label, curves) in enumerate(groups.items()):
        found, colour = mean_curve(curves), COLOURS[number % len(COLOURS)]
        if found is None:
            continue
        (steps, middle, lower, upper), count = found, sum(bool(one.points) for one in curves)
        seeds = f", {count} seeds" if count > 1 else ""
        axes.plot(steps, middle, color=colour, label=f"{plain_label(label)}{seeds}")
        axes.fill_between(steps, lower, upper, color=colour, alpha=0.2, lw=0)
    measure = next(curve.measure for curves in groups.values() for curve in curves)
    axes.set(xlabel=STEPS_NAME, ylabel=AXIS[measure])
    if measure in MEASURES:
        axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(output, dpi=120)
