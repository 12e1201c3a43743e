"""Where a curriculum is on its way: the lessons passed, the present one, those to come."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from aimbot_lab.curriculum.current_lesson import CurrentLesson
from aimbot_lab.curriculum.reports import LessonReport, lesson_report, not_begun
from aimbot_lab.curriculum.settings import Lesson


class LessonPath:
    """The lessons in order, and the reports of those that are passed."""

    def __init__(self, lessons: Sequence[Lesson]) -> None:
        self._lessons = lessons
        self._passed: list[LessonReport] = []

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

    def advance(self, report: LessonReport) -> None:
        """The present lesson is passed."""
        self._passed.append(report)

    def go_back(self, number: int) -> None:
        """Lesson `number` is the present one again."""
        del self._passed[number:]

    def reports(self, present: CurrentLesson) -> tuple[LessonReport, ...]:
        """Every lesson in order: how it ended, as it stands, or not begun (no episodes)."""
        current = () if self.finished else (lesson_report(present, None),)
        begun = (*self._passed, *current)
        return (*begun, *(not_begun(lesson.name) for lesson in self._lessons[len(begun) :]))

    def state(self) -> list[dict[str, Any]]:
        """Plain JSON values."""
        return [asdict(report) for report in self._passed]

    def resume(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Go on from what `state()` gave for the same lessons."""
        self._passed = [LessonReport(**report) for report in state]
