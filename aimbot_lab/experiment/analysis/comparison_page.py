"""A comparison as a person reads it: sentences and rows for a terminal, and a page with charts."""

from collections.abc import Iterator, Mapping
from itertools import cycle
from math import isfinite
from types import MappingProxyType

from aimbot_lab.experiment.analysis.comparison import ComparedRun, Comparison, Difference
from aimbot_lab.experiment.analysis.evaluation import shown_score
from aimbot_lab.experiment.analysis.learning_curve import (
    COLOURS,
    Interval,
    LessonPassed,
    StepCurve,
    curve_chart,
    heading,
    html_table,
    interval_chart,
    page,
    paragraph,
)
from aimbot_lab.experiment.analysis.matches import HEAD as MATCH_HEAD
from aimbot_lab.experiment.analysis.matches import match_rows
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.shown_text import (
    one_line,
    percent,
    shown_difference,
    shown_number,
    shown_return,
)

Rows = list[tuple[str, ...]]

_VERDICT_COLOURS = {"better": "#2a9d5c", "worse": "#c1121f", "alike": "#4269d0"}
UNCLEAR = "#777777"


def difference_head(found: Comparison, run: ComparedRun) -> tuple[str, ...]:
    """The heads of `difference_rows` of `run` against the first: their names, where they differ."""
    names = [found.runs[0].name, run.name]
    if names[0] == names[1]:
        names = [label(found.runs[0]), label(run)]
    measures = [f"{name}: difference [95 %]" for name in _measures(found.differences[0][0])]
    return ("cell", *names, "difference [95 %]", *measures, "p (Holm)", "verdict", "more")


def _measures(row: Difference) -> list[str]:
    """What else the world measures whose differences are told."""
    return [name for name in row.measures if not name.endswith(("_lower", "_upper"))]


def _measured(row: Difference, name: str) -> str:
    value, lower, upper = (row.measures[key] for key in (name, f"{name}_lower", f"{name}_upper"))
    interval = "" if lower is None or upper is None else f" [{lower:+.3f}, {upper:+.3f}]"
    return f"{value:+.3f}{interval}"


RUN_HEAD = ("run", "name", "seed", "status", "agent", "score [95 %]", "mean while learning")
ALL = "all"
_OF_LESSONS = "of which a run that is further ahead meets harder ones"
CURVES: Mapping[str, str] = MappingProxyType(
    {
        names.EVAL_WIN_RATE: "the same episodes at every step",
        names.LEARNING_WIN_RATE: f"the episodes of the lesson in force, {_OF_LESSONS}",
        names.LESSON_WIN_RATE: f"the last episodes of the lesson in force, {_OF_LESSONS}",
        names.EVAL_RETURN: "the same episodes at every step",
        names.EPISODE_RETURN: f"the episodes of the lesson in force, {_OF_LESSONS}",
    }
)
"""What the points of a curve are of, by its measure."""


def label(run: ComparedRun) -> str:
    """A run as charts and heads name it."""
    return one_line(f"{run.name} ({run.run_id[:8]})")


def cell_of(row: Difference) -> str:
    """What a row is about."""
    return ALL if row.cell is None else row.cell.shown


def run_rows(found: Comparison) -> Rows:
    """The runs, under RUN_HEAD."""
    return [
        (
            run.run_id[:8],
            run.name,
            str(run.seed),
            run.status,
            f"{run.agent}, step {run.step:,}, {run.temperature.label}",
            shown_score(one, has_wins=found.has_wins),
            "-" if run.mean_win_rate is None else _number(run.mean_win_rate, found.has_wins),
        )
        for run in found.runs
        for one in [run.scores.overall]
    ]


def _number(value: float, has_wins: bool) -> str:
    """A win rate, or a mean return."""
    return percent(value) if has_wins else shown_return(value)


def _difference(row: Difference) -> str:
    """A difference with its interval."""
    if not row.by_return:
        return shown_difference(row.difference, row.lower, row.upper)
    difference, *ends = (shown_number(one, "+") for one in (row.difference, row.lower, row.upper))
    return f"{difference} [{', '.join(ends)}]" if isfinite(row.lower) else difference


def difference_rows(rows: tuple[Difference, ...]) -> Rows:
    """One run against the first, under `difference_head`."""
    return [
        (
            cell_of(row),
            _number(row.first, not row.by_return),
            _number(row.second, not row.by_return),
            _difference(row),
            *(_measured(row, name) for name in _measures(row)),
            ("<0.001" if row.adjusted_p_value < 0.001 else f"{row.adjusted_p_value:.3f}"),
            row.verdict,
            f"{row.more_episodes:,}" if row.more_episodes else "-",
        )
        for row in rows
    ]


def match_parts(found: Comparison) -> list[tuple[str, Rows]]:
    """A heading and rows of each direct match, or why there is none and no rows."""
    first = label(found.runs[0])
    return [
        (
            f"{label(run)} in matches against {first}" + (f": none, {why}" if why else ""),
            match_rows(scores),
        )
        for run, scores, why in zip(found.runs[1:], found.matches, found.unmatched, strict=False)
    ]


def lesson_rows(found: Comparison) -> Rows:
    """When each run passed each lesson; first a row of heads. Empty where no run has lessons."""
    head = ("lesson", *(label(run) for run in found.runs))
    shared = min(len(run.curve.lessons) for run in found.runs)
    most = max(len(run.curve.lessons) for run in found.runs)
    if not most:
        return []
    rows: Rows = []
    for number in range(shared):
        at = [run.curve.lessons[number] for run in found.runs]
        names = " / ".join(dict.fromkeys(lesson.name for lesson in at))
        rows.append((f"{number + 1} {names}", *map(_passed, at)))
    return [head, *rows, *([tuple(_lacking_row(found, shared, most))] if most > shared else [])]


def _lacking_row(found: Comparison, shared: int, most: int) -> Iterator[str]:
    """The lessons that not all runs have, in one row: how far each run that has them came."""
    first = shared + 1
    yield f"lesson {most} alone" if first == most else f"lessons {first} to {most}"
    for run in found.runs:
        own = run.curve.lessons[shared:]
        passed = [lesson for lesson in own if lesson.step is not None]
        last = f", the last at {_passed(passed[-1])}" if passed else ""
        yield f"{len(passed)} of {len(own)} passed{last}" if own else "no such lessons"


def _passed(lesson: LessonPassed) -> str:
    if lesson.step is None or lesson.seconds is None:
        return "not passed"
    return f"{lesson.step:,} steps, {lesson.seconds:,.0f} s"


def verdicts(found: Comparison) -> list[str]:
    """What can be said, one sentence per run but the first."""
    first, *others = found.runs
    return [
        f"{label(run)} against {label(first)}: {_sentence(rows, found)}"
        for run, rows in zip(others, found.differences, strict=True)
    ]


def _sentence(rows: tuple[Difference, ...], found: Comparison) -> str:
    together, *cells = rows
    clear = [f"{row.verdict} in {cell_of(row)}" for row in cells if row.verdict in _CLEAR]
    by, margin = shown_return(abs(together.difference)), f"{100 * found.request.margin:g} %"
    if found.has_wins:
        by = f"{100 * abs(together.difference):.1f} points"
        margin = f"{100 * found.request.margin:g} points"
    overall = {
        "better": f"better over all cells by {by}",
        "worse": f"worse over all cells by {by}",
        "alike": f"alike over all cells, within {margin}"
        + ("" if found.has_wins else " of their mean return"),
        "unclear": "no clear answer over all cells",
    }[together.verdict]
    more = max(row.more_episodes for row in rows)
    asked = f"; about {more:,} more episodes a cell would settle what is unclear" if more else ""
    return "; ".join([overall, *clear]) + asked + "."


def method(found: Comparison) -> str:
    """How it was compared, and what that does not say."""
    request = found.request
    left = f" Left out, because not all end on it: {', '.join(found.left_out)}." * bool(
        found.left_out
    )
    met, test = "every run met the same episodes", "McNemar's"
    if found.unpaired:
        met = f"every run met episodes of its own, because {found.unpaired}"
        test = "Fisher's, of unpaired episodes"
    judged = "Scores are win rates" if found.has_wins else "Scores are mean returns"
    test = f"{test} (mid-p)" if found.has_wins else "that of the mean difference"
    return (
        f"{request.episodes:,} episodes of each cell, seed {request.seed}, in the world of the "
        f"first; {met}.{left} {judged}. "
        f"p is {test}, by Holm over the cells; more is how many more episodes of a cell "
        "would probably make it clear. Look once: for a second look take another --seed. This "
        "compares the agents; what settings do shows only over several training seeds."
    )


def curve_note(found: Comparison) -> str:
    """What the mean win rate while learning is taken over."""
    if found.common_steps is None:
        return "The runs have no steps in common to take a mean over."
    low, high = found.common_steps
    measure = found.runs[0].curve.measure
    of_episodes = CURVES[measure]
    if found.unpaired and measure in (names.EVAL_WIN_RATE, names.EVAL_RETURN):
        of_episodes = "as many episodes at every step"
    return (
        f"The mean while learning is the area under {measure} ({of_episodes}) from step "
        f"{low:,} to {high:,}, divided by its width."
    )


_CLEAR = ("better", "worse")


def comparison_page(found: Comparison) -> str:
    """The whole page, in one text."""
    lessons, head = lesson_rows(found), ("setting", *(label(run) for run in found.runs))
    settings = [(key, *values) for key, values in found.settings.items()]
    return page(
        "Comparison of " + ", ".join(label(run) for run in found.runs),
        [
            *map(paragraph, verdicts(found)),
            paragraph(method(found), quiet=True),
            heading("Runs"),
            html_table(RUN_HEAD, run_rows(found)),
            *_against_the_first(found),
            *(
                part
                for text, rows in match_parts(found)
                for part in (heading(text), *([html_table(MATCH_HEAD, rows)] if rows else ()))
            ),
            heading(f"{'Win rate' if found.has_wins else 'Mean return'} while learning"),
            curve_chart(_curves(found), is_rate=found.has_wins),
            paragraph(curve_note(found), quiet=True),
            *([heading("Lessons"), html_table(lessons[0], lessons[1:])] if lessons else ()),
            heading("Settings that differ"),
            html_table(head, settings) if settings else paragraph("None."),
        ],
    )


def _against_the_first(found: Comparison) -> list[str]:
    first, *others = found.runs
    parts = []
    for run, rows in zip(others, found.differences, strict=True):
        ends = [end for row in rows for end in (row.lower, row.upper) if isfinite(end)]
        widest = max(map(abs, ends), default=1.0)
        parts += [
            heading(f"{label(run)} against {label(first)}"),
            interval_chart(
                list(map(_difference_interval, rows)), low=-widest, high=widest, zero=0.0
            ),
            paragraph("Difference of scores: right of 0 the run is the better one.", quiet=True),
            html_table(difference_head(found, run), difference_rows(rows)),
        ]
    return parts


def _difference_interval(row: Difference) -> Interval:
    colour = _VERDICT_COLOURS.get(row.verdict, UNCLEAR)
    ends = (row.lower, row.upper) if isfinite(row.lower) else (row.difference, row.difference)
    return Interval(cell_of(row), row.difference, *ends, colour)


def _curves(found: Comparison) -> list[StepCurve]:
    return [
        StepCurve(
            label(run),
            run.curve.points,
            colour,
            [lesson.step for lesson in run.curve.lessons if lesson.step is not None],
        )
        for run, colour in zip(found.runs, cycle(COLOURS), strict=False)
    ]
