"""A comparison as a page with charts."""

from itertools import cycle

from aimbot_lab.evaluation.differences import Difference
from aimbot_lab.experiment.analysis.charts import (
    COLOURS,
    Curve,
    Interval,
    curve_chart,
    interval_chart,
)
from aimbot_lab.experiment.analysis.comparison import Comparison
from aimbot_lab.experiment.analysis.comparison_tables import (
    RUN_HEAD,
    cell_of,
    curve_note,
    difference_head,
    difference_rows,
    label,
    lesson_rows,
    match_parts,
    method,
    run_rows,
    verdicts,
)
from aimbot_lab.experiment.analysis.html_page import heading, html_table, page, paragraph
from aimbot_lab.experiment.analysis.match_scores import HEAD as MATCH_HEAD

_VERDICT_COLOURS = {"better": "#2a9d5c", "worse": "#c1121f", "alike": "#4269d0"}
UNCLEAR = "#777777"


def comparison_page(found: Comparison) -> str:
    """The whole page, in one text."""
    return page(
        "Comparison of " + ", ".join(label(run) for run in found.runs),
        [
            *map(paragraph, verdicts(found)),
            paragraph(method(found), quiet=True),
            heading("Runs"),
            html_table(RUN_HEAD, run_rows(found)),
            *_against_the_first(found),
            *_matches(found),
            heading("Win rate while learning"),
            curve_chart(_curves(found), x_name="environment steps; ticks: a lesson was passed"),
            paragraph(curve_note(found), quiet=True),
            heading("Lessons"),
            html_table(lesson_rows(found)[0], lesson_rows(found)[1:]),
            heading("Settings that differ"),
            *_settings(found),
        ],
    )


def _against_the_first(found: Comparison) -> list[str]:
    first, *others = found.runs
    parts = []
    for run, rows in zip(others, found.differences, strict=True):
        widest = max(abs(end) for row in rows for end in (row.lower, row.upper))
        parts += [
            heading(f"{label(run)} against {label(first)}"),
            interval_chart(list(map(_interval, rows)), low=-widest, high=widest, zero=0.0),
            paragraph("Difference of win rates: right of 0 the run wins more often.", quiet=True),
            html_table(difference_head(found, run), difference_rows(rows)),
        ]
    return parts


def _matches(found: Comparison) -> list[str]:
    return [
        part
        for text, rows in match_parts(found)
        for part in (heading(text), *([html_table(MATCH_HEAD, rows)] if rows else ()))
    ]


def _interval(row: Difference) -> Interval:
    colour = _VERDICT_COLOURS.get(row.verdict, UNCLEAR)
    return Interval(cell_of(row), row.difference, row.lower, row.upper, colour)


def _curves(found: Comparison) -> list[Curve]:
    return [
        Curve(
            label(run),
            run.curve.points,
            colour,
            [lesson.step for lesson in run.curve.lessons if lesson.step is not None],
        )
        for run, colour in zip(found.runs, cycle(COLOURS), strict=False)
    ]


def _settings(found: Comparison) -> list[str]:
    if not found.settings:
        return [paragraph("None.")]
    rows = [(key, *values) for key, values in found.settings.items()]
    return [html_table(("setting", *(label(run) for run in found.runs)), rows)]
