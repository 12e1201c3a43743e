"""Where a curriculum is on its way: the lessons passed, the present one, those to come."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from aimbot_lab.curriculum.current_lesson import CurrentLesson
from aimbot_lab.curriculum.reports import LessonReport, lesson_report, not_begun
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.curriculum.win_rate_windows import ALL_CELLS


class LessonPath:
    """The lessons in order, and the reports of those that are passed.

    Beside each report stands what the state keeps of the lesson: of that hashes of trainings are
    made, so it stays as it is while reports learn to say more.
    """

    def __init__(self, lessons: Sequence[Lesson]) -> None:
        self._lessons = lessons
        self._passed: list[tuple[dict[str, Any], LessonReport]] = []

    @property
    def finished(self) -> bool:
        """Whether the last lesson is passed."""
        return len(self._passed) == len(self._lessons)

    @property
    def number(self) -> int:
        """Number of the present lesson, from 0; of the last one once all are passed."""
        return len(self._passed) - self.finished

    @property
    def lesson(self) -> Lesson:
        """The present lesson."""
        return self._lessons[self.number]

    @property
    def is_last(self) -> bool:
        """Whether no lesson comes after the present one."""
        return self.number == len(self._lessons) - 1

    @property
    def goal_reached(self) -> bool:
        """Whether training may end here, won: the last lesson passed or asks for nothing."""
        return self.finished or (self.is_last and self.lesson.completion_criteria is None)

    def advance(self, present: CurrentLesson, step: int) -> None:
        """The present lesson is passed at `step`."""
        (window,) = present.windows.highest((ALL_CELLS,))
        kept = {
            "name": present.lesson.name,
            "ended_at_step": step,
            "episodes": present.episodes,
            "window": window.episodes,
            **window.rate._asdict(),
        }
        self._passed.append((kept, lesson_report(present, step)))

    def go_back(self, number: int) -> None:
        """Lesson `number` is the present one again."""
        del self._passed[number:]

    def reports(self, present: CurrentLesson) -> tuple[LessonReport, ...]:
        """Every lesson in order: how it ended, as it stands, or not begun (no episodes)."""
        current = () if self.finished else (lesson_report(present, None),)
        begun = (*(report for _, report in self._passed), *current)
        return (*begun, *(not_begun(lesson) for lesson in self._lessons[len(begun) :]))

    def state(self) -> list[dict[str, Any]]:
        """Plain JSON values."""
        return [kept for kept, _ in self._passed]

    @property
    def passed(self) -> list[dict[str, Any]]:
        """The reports of the lessons passed, as plain JSON values."""
        return [asdict(report) for _, report in self._passed]

    def resume(self, state: Sequence[dict[str, Any]], passed: Sequence[Mapping[str, Any]]) -> None:
        """Go on from what `state()` and `passed` gave for the same lessons."""
        reports = [LessonReport(**report) for report in passed]
        self._passed = list(zip(state, reports, strict=True))
