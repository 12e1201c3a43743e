"""What a curriculum reports: checks, cells, lessons, and a view for displays."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.current_lesson import CurrentLesson
from aimbot_lab.curriculum.win_rate_windows import ALL_CELLS, Window
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.statistics.intervals import UNKNOWN, WinRate
from aimbot_lab.foundation.statistics.ratings import points_of

MAX_LOG = 700.0  # whose exponential is a number
Decision = Literal["stay", "promote", "finish", "demote"]


@dataclass(frozen=True)
class Check:
    """One look at a lesson's test, after `episodes` counted episodes of it."""

    lesson: int
    step: int  # environment steps
    episodes: int
    statistic: float  # log of the evidence, of the weakest cell; or the measure itself
    bound: float  # log of the evidence that promotes; or the threshold
    decision: Decision


@dataclass(frozen=True)
class CellReport:
    """One cell over a window of the lesson's episodes, with the interval at 95 %.

    The interval holds however often it is looked at, and where the lesson was stopped
    (`win_rate_windows`); it is about the mean win rate over these episodes.
    """

    target: str
    difficulty: int  # 0: the target has none
    episodes: int
    wins: int
    win_rate: float | None
    lower: float
    upper: float


@dataclass(frozen=True)
class LessonReport:
    """How a lesson went; the win rate is that of its last `window` counted episodes.

    Of a lesson that was passed that is the window which shows most: over all its episodes, an
    agent that has just learned it would seem worse than it had become. The interval at 95 % holds
    for the mean win rate over the window although the lesson was stopped when it looked good.

    `ended_at_step` is the one step number of a passed lesson: the environment steps, over all
    environments, when the episode that passed it was counted. Live view, result, note, `explain`,
    the metric of the lesson's number and `compare` tell this number; the next update comes later.
    """

    name: str
    ended_at_step: int | None  # None: it is not passed
    episodes: int  # counted episodes
    window: int
    win_rate: float | None
    lower: float
    upper: float


@dataclass(frozen=True)
class Measured:
    """What a lesson compares with its threshold."""

    measure: str
    value: float | None  # None: nothing yet
    threshold: float


@dataclass(frozen=True)
class CurriculumView:
    """Where a curriculum stands, for the eyes of a person."""

    lesson: int  # from 0
    lessons: int
    name: str
    episodes: int  # counted episodes of this lesson
    window: int  # of these, how many the win rate is taken over
    win_rate: WinRate
    threshold: float | None  # of the win rate; None: the lesson asks for none
    min_lesson_length: int
    log_evidence: float | None
    log_bound: float | None
    cells: tuple[CellReport, ...]
    measured: Measured | None = None  # where the lesson is not judged by evidence of a win rate
    shares: Mapping[Cell, float] | None = None  # of the episodes, where the mix is not as written
    lacks: str = ""  # what keeps the lesson from being passed, where that is no cell's win rate


def view(
    lesson_now: CurrentLesson, *, lesson: int, lessons: int, shares: Mapping[Cell, float] | None
) -> CurriculumView:
    """Where a curriculum stands that is in `lesson` (from 0) of `lessons`."""
    criteria = lesson_now.lesson.completion_criteria
    of_wins = criteria is not None and criteria.measured.of_wins
    window, *windows = lesson_now.windows.recent((ALL_CELLS, *lesson_now.cells))
    return CurriculumView(
        lesson=lesson,
        lessons=lessons,
        name=lesson_now.lesson.name,
        episodes=lesson_now.episodes,
        window=window.episodes,
        win_rate=window.rate,
        threshold=criteria.threshold if criteria and of_wins else None,
        min_lesson_length=criteria.min_lesson_length if criteria else 0,
        log_evidence=lesson_now.log_evidence,
        log_bound=lesson_now.log_bound,
        cells=tuple(map(_cell_report, lesson_now.cells, windows)),
        measured=_measured(lesson_now),
        shares=shares,
        lacks=lacks(lesson_now),
    )


def _measured(lesson: CurrentLesson) -> Measured | None:
    criteria, rule = lesson.lesson.completion_criteria, lesson.rule
    if criteria is None or rule is None:
        return None
    if lesson.log_evidence is None:
        value = None if math.isnan(rule.statistic) else rule.statistic
    elif criteria.measured.of_wins:
        return None
    else:
        value = _recent_mean(lesson, criteria)
    return Measured(criteria.measure, value, criteria.threshold)


def _recent_mean(lesson: CurrentLesson, criteria: CompletionCriteria) -> float | None:
    """The mean of what the last episodes brought; in rating points where these are asked for."""
    kind, against = criteria.measured, criteria.against
    shown = (
        one for one in lesson.recent if against is None or (one.cell and one.cell.target == against)
    )
    values = [float(value) for one in shown if (value := kind.value(one)) is not None]
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return points_of(mean, len(values)) if kind.of_points else mean


def lesson_report(lesson: CurrentLesson, step: int | None) -> LessonReport:
    """How `lesson` went that was passed at `step`, or as it stands where that is None."""
    of = lesson.windows.recent if step is None else lesson.windows.highest
    (window,) = of((ALL_CELLS,))
    return LessonReport(lesson.lesson.name, step, lesson.episodes, window.episodes, *window.rate)


def not_begun(name: str) -> LessonReport:
    """The report of a lesson that is still to come."""
    return LessonReport(name, None, 0, 0, *UNKNOWN)


def held_back(lesson: CurrentLesson) -> tuple[CellReport, ...]:
    """Of the cells of `lesson` that have not passed, those with the lowest win rate.

    None where no win rate is too low: where it is not what passes the lesson, or is over the
    threshold by too few episodes.
    """
    criteria = lesson.lesson.completion_criteria
    if criteria is None or not criteria.measured.of_wins:
        return ()
    pairs = zip(cell_reports(lesson), lesson.lacking, strict=True)
    lacking = [cell for cell, is_lacking in pairs if is_lacking]
    worst = min((_rank(cell) for cell in lacking), default=math.inf)
    return tuple(c for c in lacking if _rank(c) == worst) if worst <= criteria.threshold else ()


def lacks(lesson: CurrentLesson) -> str:
    """What keeps `lesson` from being passed, where that is no cell's win rate; else nothing."""
    criteria, rule = lesson.lesson.completion_criteria, lesson.rule
    if criteria is None or rule is None or lesson.passed or held_back(lesson):
        return ""
    length, found, least = rule.episodes, rule.statistic, criteria.min_lesson_length
    of_evidence = criteria.by_evidence
    is_enough = found >= rule.bound if of_evidence else not found <= rule.bound  # or NaN
    if length < least and is_enough:
        return f"{length:,} of at least {least:,} episodes"
    if of_evidence:
        return f"evidence {odds(found)} of {odds(rule.bound)}"
    value = "unknown" if math.isnan(found) else f"{found:.4g}, not above {rule.bound:g}"
    return f"{criteria.measure} {value}"


def odds(log_evidence: float) -> str:
    """Evidence as odds, however large."""
    if log_evidence < MAX_LOG:
        return f"{math.exp(log_evidence):.3g}"
    return f"1e+{log_evidence / math.log(10):.0f}"


def _rank(cell: CellReport) -> float:
    return -1.0 if cell.win_rate is None else cell.win_rate


def floors(lesson: CurrentLesson, margin: float) -> dict[Cell, float]:
    """Below what no cell's win rate may fall, now that `lesson` is passed.

    A cell that passed by itself has shown the threshold; one that passed with others, no more
    than the lower end of its own interval. Empty where the lesson was not passed by its win rate.
    """
    criteria = lesson.lesson.completion_criteria
    if criteria is None or not criteria.measured.of_wins:
        return {}
    return {
        Cell(cell.target, cell.difficulty): (
            criteria.threshold if criteria.every_cell else min(criteria.threshold, cell.lower)
        )
        - margin
        for cell in cell_reports(lesson)
    }


def cell_reports(lesson: CurrentLesson) -> tuple[CellReport, ...]:
    """One report for each cell of `lesson`: what it shows most where that is passed."""
    of = lesson.windows.highest if lesson.passed else lesson.windows.recent
    return tuple(map(_cell_report, lesson.cells, of(lesson.cells)))


def _cell_report(cell: Cell, window: Window) -> CellReport:
    return CellReport(
        target=cell.target,
        difficulty=cell.difficulty,
        episodes=window.episodes,
        wins=window.wins,
        win_rate=window.rate.win_rate,
        lower=window.rate.lower,
        upper=window.rate.upper,
    )
