"""What a curriculum tells about itself: checks, cells, lessons, and a view for displays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aimbot_lab.curriculum.outcomes import Outcome
from aimbot_lab.foundation.intervals import WinRate, wilson
from aimbot_lab.foundation.world import Cell


@dataclass(frozen=True)
class Check:
    """One look at a lesson's test, after `episodes` counted episodes of it."""

    lesson: int
    step: int  # environment steps
    episodes: int
    statistic: float  # log of the evidence; of the weakest cell where every cell must pass
    bound: float  # log of the evidence that promotes
    decision: Literal["stay", "promote", "finish"]


@dataclass(frozen=True)
class CellReport:
    """One cell over the lesson's most recent episodes."""

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

    Of a lesson that was passed these are the ones that speak most for it: with the whole of its
    last 500, an agent that has just learned it would seem worse than it had become.
    """

    name: str
    ended_at_step: int | None  # None: it never ended
    episodes: int  # counted episodes
    window: int
    win_rate: float | None
    lower: float
    upper: float


@dataclass(frozen=True)
class CurriculumView:
    """Where a curriculum stands, for the eyes of a person."""

    lesson: int  # from 0
    lessons: int
    name: str
    episodes: int  # counted episodes of this lesson
    window: int  # of these, how many the win rate is taken over
    win_rate: WinRate
    threshold: float | None  # None: the lesson has no criterion
    min_lesson_length: int
    log_evidence: float | None
    log_bound: float | None
    cells: tuple[CellReport, ...]


def recent_win_rate(recent: Sequence[Outcome]) -> WinRate:
    """Win rate of `recent` with its interval."""
    return wilson(sum(outcome.won for outcome in recent), len(recent))


def cell_reports(cells: Sequence[Cell], recent: Sequence[Outcome]) -> tuple[CellReport, ...]:
    """One report for each of `cells` over `recent`."""
    episodes = [0] * len(cells)
    wins = [0] * len(cells)
    for outcome in recent:
        if outcome.cell >= 0:
            episodes[outcome.cell] += 1
            wins[outcome.cell] += outcome.won
    return tuple(map(_cell_report, cells, episodes, wins))


def _cell_report(cell: Cell, episodes: int, wins: int) -> CellReport:
    rate = wilson(wins, episodes)
    return CellReport(
        target=cell.target,
        difficulty=cell.difficulty,
        episodes=episodes,
        wins=wins,
        win_rate=rate.win_rate,
        lower=rate.lower,
        upper=rate.upper,
    )
