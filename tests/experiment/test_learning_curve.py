"""What a run's recorded numbers say of how it learned."""

from datetime import UTC, datetime, timedelta

import pytest

from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.experiment.analysis.learning_curve import (
    CurvePoint,
    LearningCurve,
    common_steps,
    lessons_passed,
    mean_win_rate,
)
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.tracking.run_summary import MetricPoint, RunSummary

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
NUMBERS = [(100, 1.0), (200, 2.0), (300, 2.0), (400, 3.0), (500, 3.0)]


def run(status: str) -> RunSummary:
    return RunSummary("id", "name", "e", "1", status, BEGAN, None, {}, {})


def config(*, goal: bool = True) -> CurriculumFile:
    names = ("a", "b", "c")
    last = CompletionCriteria(threshold=0.5) if goal else None
    lessons = [
        Lesson(
            name=name,
            targets={"goto": 1.0},
            completion_criteria=last if name == "c" else CompletionCriteria(threshold=0.5),
        )
        for name in names
    ]
    return CurriculumFile(name="x", lessons=tuple(lessons))


def points(*, rows: list[tuple[int, float]]) -> list[MetricPoint]:
    at = [BEGAN + timedelta(seconds=step / 10) for step, _ in rows]
    stamps = [round(moment.timestamp() * 1000) for moment in at]
    return [MetricPoint(step, ms, value) for (step, value), ms in zip(rows, stamps, strict=True)]


def curve(*rows: tuple[int, float]) -> LearningCurve:
    return LearningCurve(tuple(CurvePoint(*row) for row in rows), ())


def test_a_lesson_was_passed_when_the_next_was_first_reported() -> None:
    passed = lessons_passed(run("FINISHED"), config(), points(rows=NUMBERS))
    assert [(lesson.name, lesson.step, lesson.seconds) for lesson in passed] == [
        ("a", 200, pytest.approx(20)),
        ("b", 400, pytest.approx(40)),
        ("c", 500, pytest.approx(50)),
    ]


def test_a_lesson_that_was_begun_again_counts_from_its_last_passing() -> None:
    rows = [(100, 1.0), (200, 2.0), (300, 1.0), (400, 2.0)]
    first, *others = lessons_passed(run("FAILED"), config(), points(rows=rows))
    assert (first.step, [one.step for one in others]) == (400, [None, None])
    again = lessons_passed(run("FAILED"), config(), points(rows=rows[:3]))
    assert [one.step for one in again] == [None] * 3


@pytest.mark.parametrize(("status", "goal"), [("FAILED", True), ("FINISHED", False)])
def test_the_last_lesson_is_passed_only_where_its_goal_was_reached(status: str, goal: bool) -> None:
    *_, last = lessons_passed(run(status), config(goal=goal), points(rows=NUMBERS))
    assert (last.step, last.seconds) == (None, None)


def test_a_run_without_numbers_passed_nothing() -> None:
    assert [lesson.step for lesson in lessons_passed(run("KILLED"), config(), [])] == [None] * 3


def test_a_win_rate_holds_until_the_next() -> None:
    stairs = curve((10, 0.0), (20, 0.5), (40, 1.0))
    assert mean_win_rate(stairs, 10, 40) == pytest.approx((0.0 * 10 + 0.5 * 20) / 30)
    assert mean_win_rate(stairs, 15, 25) == pytest.approx((0.0 * 5 + 0.5 * 5) / 10)
    later = curve((10, 0.3), (20, 0.5), (40, 1.0))
    assert mean_win_rate(later, 30, 50) == pytest.approx((0.5 * 10 + 1.0 * 10) / 20)
    assert mean_win_rate(stairs, 20, 60) == pytest.approx((0.5 * 20 + 1.0 * 20) / 40)


def test_a_mean_does_not_hang_on_how_often_was_reported() -> None:
    seldom, often = curve((0, 0.2), (10, 0.8)), curve((0, 0.2), (4, 0.2), (10, 0.8), (15, 0.8))
    assert mean_win_rate(seldom, 2, 20) == pytest.approx(mean_win_rate(often, 2, 20))


def test_curves_share_the_steps_that_all_have() -> None:
    assert common_steps([curve((5, 0.1), (50, 0.2)), curve((10, 0.1), (90, 0.2))]) == (10, 50)
    assert common_steps([curve((5, 0.1), (50, 0.2)), curve((60, 0.1), (90, 0.2))]) is None
    assert common_steps([curve((5, 0.1), (50, 0.2)), curve()]) is None
