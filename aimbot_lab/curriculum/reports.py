"""What a curriculum reports of itself, and the records of it that a file keeps."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from aimbot_lab.curriculum.current_lesson import CurrentLesson
from aimbot_lab.curriculum.evidence import ALL_CELLS, RateWindow
from aimbot_lab.curriculum.rules import WIN_RATE, CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.episodes import UNKNOWN, Cell, WinRate
from aimbot_lab.foundation.ratings import points_of
from aimbot_lab.foundation.shown_text import odds, shown_evidence, shown_measure

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
    (`evidence`); it is about the mean win rate over these episodes.
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
    """How a lesson went, and by what it is judged.

    Of a lesson that was passed by evidence of its win rate, the win rate is that of the episodes
    that prove it (with `scope: every_cell`, of each cell), and the interval is the test's own: it
    holds all rates that the test would not reject, with a probability of 1 - alpha. Its lower end
    (of the weakest cell) exceeds the threshold, and it has no upper end but 1.

    Of every other lesson the win rate is that of its last `window` counted episodes, with the
    interval at 95 % of its mean over them (`evidence`).

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
    measure: str | None = None  # what is judged; None: nothing, or it is not known
    threshold: float | None = None  # that it must exceed, or reach: see `relation`
    every_cell: bool = False  # whether it must in each cell by itself
    evidence: float | None = None  # odds, of the weakest cell, at most 1e304; None: no test judges
    evidence_needed: float | None = None  # 1 / alpha
    value: float | None = None  # of the measure, where no test judges
    rule: str | None = None  # that judges episodes without a test
    mean_return: float | None = None  # of its last episodes, where none can be won
    relation: str = ">"  # that the measure must have to the threshold

    @property
    def of_win_rate(self) -> bool:
        """Whether the threshold is one of the win rate."""
        return self.measure == WIN_RATE.name

    @property
    def asked(self) -> str:
        """What the lesson asks for, as `win rate > 30 %`; empty: nothing, or it is not known."""
        return self._claim()

    @property
    def found(self) -> str:
        """What is known of that, as `22.1 of 20`, which is evidence; empty: nothing."""
        if self.evidence is not None and self.evidence_needed is not None:
            return shown_evidence(self.evidence, self.evidence_needed)
        return f"{self._shown_value} (no test)" if self._shown_value else ""

    @property
    def level(self) -> str:
        """What follows an interval that is not at 95 %: ` at 80 %`."""
        needed = self.evidence_needed
        if needed is None or not self.of_win_rate or self.ended_at_step is None:
            return ""
        return "" if abs(needed - 20.0) < 1e-9 else f" at {100 - 100 / needed:.6g} %"

    def proof(self, win_rate: str = "") -> str:
        """What a passed lesson has shown, as `win rate > 30 %, evidence 22.1 of 20`.

        `win_rate` is shown with it where the test was about it.
        """
        if self.evidence is None:
            rule = "" if self.rule is None else f", by rule {self.rule}"
            return self._claim(self._shown_value) + rule if self._shown_value else ""
        return f"{self._claim(win_rate if self.of_win_rate else '')}, evidence {self.found}"

    def _claim(self, value: str = "") -> str:
        """`asked`, with what was found if `value` says that."""
        if self.measure is None or self.threshold is None:
            return ""
        limit = shown_measure(self.measure, self.threshold)
        where = " (each cell)" if self.every_cell else ""
        words = (self.measure.replace("_", " "), value, self.relation, limit)
        return " ".join(filter(None, words)) + where

    @property
    def _shown_value(self) -> str:
        if self.value is None or self.measure is None:
            return ""
        return shown_measure(self.measure, self.value, digits=4)


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
    has_wins: bool = True  # whether an episode can be won; else there are no win rates
    mean_return: float | None = None  # of the last `window` episodes, where none can be won


def view(
    lesson_now: CurrentLesson, *, lesson: int, lessons: int, shares: Mapping[Cell, float] | None
) -> CurriculumView:
    """Where a curriculum stands that is in `lesson` (from 0) of `lessons`."""
    criteria, rule = lesson_now.lesson.completion_criteria, lesson_now.rule
    cells = lesson_now.cells if lesson_now.has_wins else ()
    window, *windows = lesson_now.windows.recent((ALL_CELLS, *cells))
    return CurriculumView(
        lesson=lesson,
        lessons=lessons,
        name=lesson_now.lesson.name,
        episodes=lesson_now.counted,
        window=window.episodes if lesson_now.has_wins else len(lesson_now.recent),
        win_rate=window.rate,
        threshold=criteria.threshold if criteria and criteria.of_win_rate else None,
        min_lesson_length=criteria.min_lesson_length if criteria else 0,
        log_evidence=None if rule is None else rule.log_evidence,
        log_bound=None if rule is None else rule.log_bound,
        cells=tuple(map(_cell_report, cells, windows)),
        measured=_measured(lesson_now),
        shares=shares,
        has_wins=lesson_now.has_wins,
        mean_return=lesson_now.mean_return,
    )


def _measured(lesson: CurrentLesson) -> Measured | None:
    criteria, rule = lesson.lesson.completion_criteria, lesson.rule
    if criteria is None or rule is None:
        return None
    if rule.log_evidence is None:
        value = None if math.isnan(rule.statistic) else rule.statistic
    elif criteria.of_win_rate:
        return None
    else:
        value = _recent_mean(lesson, criteria)
    return Measured(criteria.judged, value, criteria.threshold)


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
    if proven := lesson.proven.values():
        episodes = sum(one.episodes for one in proven)
        wins = sum(one.wins for one in proven)
        lower = min(one.rate.lower for one in proven)
        window = RateWindow(episodes, wins, WinRate(wins / episodes, lower, 1.0))
    report = replace(
        not_begun(lesson.lesson),
        ended_at_step=step,
        episodes=lesson.counted,
        window=window.episodes if lesson.has_wins else len(lesson.recent),
        mean_return=lesson.mean_return,
        **window.rate._asdict(),
    )
    criteria, rule = lesson.lesson.completion_criteria, lesson.rule
    if criteria is None or rule is None:
        return report
    if not criteria.by_evidence:
        return replace(report, value=None if math.isnan(rule.statistic) else rule.statistic)
    if criteria.of_win_rate and lesson.passed and not proven:
        # It went on from a checkpoint of an older version: this is the least that is proven.
        report = replace(report, lower=criteria.threshold, upper=1.0)
    return replace(report, evidence=odds(rule.statistic), evidence_needed=odds(rule.bound))


def not_begun(lesson: Lesson) -> LessonReport:
    """The report of a lesson that is still to come."""
    report, criteria = LessonReport(lesson.name, None, 0, 0, *UNKNOWN), lesson.completion_criteria
    if criteria is None:
        return report
    return replace(
        report,
        measure=criteria.judged,
        threshold=criteria.threshold,
        relation=criteria.rule_type.relation,
        every_cell=criteria.every_cell,
        rule=None if criteria.by_evidence or not criteria.measured.of_episodes else criteria.rule,
    )


def missing(lesson: CurrentLesson) -> str:
    """What `lesson` lacks to be passed, in words; empty: nothing, or what `held_back` gives."""
    criteria, rule = lesson.lesson.completion_criteria, lesson.rule
    if criteria is None or rule is None or rule.passed or held_back(lesson):
        return ""
    parts = [found] if (found := rule.missing()) else []
    if (more := criteria.min_lesson_length - rule.episodes) > 0:
        parts.append(f"{more:,} of {criteria.min_lesson_length:,} episodes")
    return " and ".join(parts)


def held_back(lesson: CurrentLesson) -> tuple[CellReport, ...]:
    """Of the cells of `lesson` that have not passed, those with the lowest win rate.

    Empty where the lesson is not judged by evidence of its win rate, and where that is over the
    threshold by too few episodes.
    """
    criteria = lesson.lesson.completion_criteria
    if criteria is None or not (criteria.by_evidence and criteria.of_win_rate):
        return ()
    pairs = zip(cell_reports(lesson), lesson.lacking, strict=True)
    lacking = [cell for cell, is_lacking in pairs if is_lacking]
    worst = min((_rank(cell) for cell in lacking), default=math.inf)
    return tuple(c for c in lacking if _rank(c) == worst) if worst <= criteria.threshold else ()


def _rank(cell: CellReport) -> float:
    return -1.0 if cell.win_rate is None else cell.win_rate


def floors(lesson: CurrentLesson, margin: float) -> dict[Cell, float]:
    """Below what no cell's win rate may fall, now that `lesson` is passed.

    A cell that passed by itself has shown the threshold; one that passed with others, no more
    than the lower end of its own interval. Empty where the lesson was not passed by its win rate.
    """
    criteria = lesson.lesson.completion_criteria
    if criteria is None or not criteria.of_win_rate:
        return {}
    return {
        cell: (
            criteria.threshold
            if criteria.every_cell
            else min(criteria.threshold, window.rate.lower)
        )
        - margin
        for cell, window in zip(lesson.cells, lesson.windows.highest(lesson.cells), strict=True)
    }


def cell_reports(lesson: CurrentLesson) -> tuple[CellReport, ...]:
    """One report for each cell of `lesson`, if an episode can be won: what it shows most if passed.

    The interval is the test's own, as that of `LessonReport`, where the test is about that cell.
    """
    if not lesson.has_wins:
        return ()
    windows = (lesson.windows.highest if lesson.passed else lesson.windows.recent)(lesson.cells)
    proven = lesson.proven
    if len(lesson.cells) == 1 and ALL_CELLS in proven:
        proven = {lesson.cells[0]: proven[ALL_CELLS]}
    shown = (proven.get(cell, window) for cell, window in zip(lesson.cells, windows, strict=True))
    return tuple(map(_cell_report, lesson.cells, shown))


def _cell_report(cell: Cell, window: RateWindow) -> CellReport:
    episodes, wins, rate = window
    return CellReport(*cell, episodes, wins, rate.win_rate, rate.lower, rate.upper)
