"""A curriculum's way through its lessons, driven by finished episodes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from aimbot_lab.curriculum.cells import lesson_scenario
from aimbot_lab.curriculum.open_lesson import OpenLesson
from aimbot_lab.curriculum.ordering import StartOrder
from aimbot_lab.curriculum.outcomes import Outcome, read_outcome
from aimbot_lab.curriculum.reports import (
    CellReport,
    Check,
    CurriculumView,
    LessonReport,
    cell_reports,
    recent_win_rate,
)
from aimbot_lab.curriculum.settings import Lesson, chain_faults
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.intervals import wilson
from aimbot_lab.foundation.results import UnparsedLineError
from aimbot_lab.foundation.world import Scenario

MOST_REASONS = 20
OTHER_REASONS = "other reasons"


class CurriculumProgress:
    """The current lesson, its open test, and how the lessons before it went.

        number = world.set_scenario(progress.scenario)
        progress.begin_scenario(number)
        ... after each step of the world ...
        check = progress.add(batch, step=steps)
        if check and check.decision == "promote": set the next scenario as above

    Episodes count only between `begin_scenario` and the promotion that ends the lesson.
    `difficulties` is the world's number of difficulties of each target. Raises
    ConfigurationError where the lessons make no chain.
    """

    def __init__(self, lessons: Sequence[Lesson], difficulties: Mapping[str, int]) -> None:
        faults = [
            ": ".join((".".join(map(str, ("lessons", *where))), what))
            for where, what in chain_faults(lessons)
        ]
        if faults:
            raise ConfigurationError(*faults)
        self._lessons = tuple(lessons)
        self._difficulties = dict(difficulties)
        self._ended: list[LessonReport] = []
        self._order = StartOrder()
        self._open = OpenLesson(self._lessons[0], self._difficulties)
        self.finished = False
        self.unparsed: dict[str, int] = {}

    @property
    def lesson(self) -> int:
        """Number of the current lesson, from 0."""
        return len(self._ended) - self.finished

    @property
    def scenario(self) -> Scenario:
        """What the current lesson's episodes are drawn from."""
        return lesson_scenario(self._open.lesson, self._difficulties)

    @property
    def goal_reached(self) -> bool:
        """Whether training may end here, won: the last lesson passed or asks for nothing."""
        last = self.lesson == len(self._lessons) - 1
        return self.finished or (last and self._open.lesson.completion_criteria is None)

    def begin_scenario(self, number: int) -> None:
        """Count the episodes that the world draws as scenario `number`, and no others."""
        self._order.begin(number)

    def add(self, batch: EpisodeBatch, *, step: int) -> Check | None:
        """The check that these episodes led to; None where none counted or nothing is asked.

        `step` is the number of environment steps taken so far.
        """
        if not batch:
            return None
        released = self._order.add(batch, self._read(batch))
        if not released or self.finished:
            return None
        self._open.count_until_passed(released)
        return self._check(step)

    def _read(self, batch: EpisodeBatch) -> list[Outcome | None]:
        outcomes: list[Outcome | None] = []
        for line, scenario in zip(batch.lines, batch.scenario.tolist(), strict=True):
            current = scenario == self._order.scenario
            cells = self._open.cells if current else ()
            required = current and self._open.every_cell
            try:
                outcomes.append(read_outcome(line, cells, cell_required=required))
            except UnparsedLineError as error:
                self._note_unparsed(str(error))
                outcomes.append(None)
        return outcomes

    def _note_unparsed(self, reason: str) -> None:
        if reason not in self.unparsed and len(self.unparsed) >= MOST_REASONS:
            reason = OTHER_REASONS
        self.unparsed[reason] = self.unparsed.get(reason, 0) + 1

    def _check(self, step: int) -> Check | None:
        statistic, bound = self._open.log_evidence, self._open.log_bound
        if statistic is None or bound is None:
            return None
        number, episodes = self.lesson, self._open.episodes
        decision = self._move_on(step) if self._open.passed else "stay"
        return Check(number, step, episodes, statistic, bound, decision)

    def _move_on(self, step: int) -> Literal["promote", "finish"]:
        self._ended.append(self._report(step))
        self._order.begin(None)
        if len(self._ended) == len(self._lessons):
            self.finished = True
            return "finish"
        self._open = OpenLesson(self._lessons[len(self._ended)], self._difficulties)
        return "promote"

    def _report(self, step: int | None) -> LessonReport:
        recent = self._open.recent if step is None else self._open.carrying_episodes()
        return LessonReport(
            self._open.lesson.name,
            step,
            self._open.episodes,
            len(recent),
            *recent_win_rate(recent),
        )

    @property
    def lesson_reports(self) -> tuple[LessonReport, ...]:
        """Every lesson in order: how it ended, as it stands, or not begun (no episodes)."""
        current = () if self.finished else (self._report(None),)
        begun = (*self._ended, *current)
        rest = (lesson.name for lesson in self._lessons[len(begun) :])
        return (*begun, *(LessonReport(name, None, 0, 0, *wilson(0, 0)) for name in rest))

    @property
    def cell_reports(self) -> tuple[CellReport, ...]:
        """The current (or last) lesson's cells over its most recent counted episodes."""
        return cell_reports(self._open.cells, self._open.recent)

    @property
    def view(self) -> CurriculumView:
        """Where the curriculum stands."""
        criteria = self._open.lesson.completion_criteria
        return CurriculumView(
            lesson=self.lesson,
            lessons=len(self._lessons),
            name=self._open.lesson.name,
            episodes=self._open.episodes,
            window=len(self._open.recent),
            win_rate=recent_win_rate(self._open.recent),
            threshold=criteria.threshold if criteria else None,
            min_lesson_length=criteria.min_lesson_length if criteria else 0,
            log_evidence=self._open.log_evidence,
            log_bound=self._open.log_bound,
            cells=self.cell_reports,
        )

    def held_back_by(self) -> tuple[CellReport, ...]:
        """Of the cells that have not passed, those with the lowest win rate.

        A cell without episodes counts as lowest. Empty where nothing is lacking.
        """
        pairs = zip(self.cell_reports, self._open.lacking, strict=True)
        lacking = [cell for cell, lacks in pairs if lacks]
        worst = min((_rank(cell) for cell in lacking), default=0.0)
        return tuple(cell for cell in lacking if _rank(cell) == worst)

    def state(self) -> dict[str, Any]:
        """Everything the future depends on, as plain JSON values."""
        return {
            "ended": [asdict(report) for report in self._ended],
            "finished": self.finished,
            "unparsed": dict(self.unparsed),
            "scenario": self._order.scenario,
            "waiting": [[rank, int(won), cell] for rank, (won, cell) in self._order.waiting],
            "open": self._open.state(),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave for the same lessons."""
        self._ended = [LessonReport(**report) for report in state["ended"]]
        self.finished = state["finished"]
        self.unparsed = dict(state["unparsed"])
        waiting = [(rank, Outcome(bool(won), cell)) for rank, won, cell in state["waiting"]]
        self._order.resume(state["scenario"], waiting)
        self._open = OpenLesson(self._lessons[self.lesson], self._difficulties)
        self._open.resume(state["open"])


def _rank(cell: CellReport) -> float:
    return -1.0 if cell.win_rate is None else cell.win_rate
