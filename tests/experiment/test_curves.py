"""Learning curves: what recorded numbers say, their means, and how they are drawn."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.experiment.analysis.learning_curve import (
    Interval,
    LearningCurve,
    StepCurve,
    Trail,
    common_steps,
    curve_chart,
    draw_curves,
    interval_chart,
    lessons_passed,
    mean_curve,
    mean_win_rate,
    trail_chart,
)
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.tracking.tracker import MetricPoint, RunSummary

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
NUMBERS = [(100, 1.0), (200, 2.0), (300, 2.0), (400, 3.0), (500, 3.0)]


def run(status: str) -> RunSummary:
    return RunSummary("id", "name", "e", "1", status, BEGAN, None, {}, {})


def config(*, goal: bool = True) -> CurriculumFile:
    asked = CompletionCriteria(threshold=0.5)
    lessons = [
        Lesson(name=name, targets={"goto": 1.0}, completion_criteria=criteria)
        for name, criteria in (("a", asked), ("b", asked), ("c", asked if goal else None))
    ]
    return CurriculumFile(name="x", lessons=tuple(lessons))


def passed(
    status: str, rows: list[tuple[int, float]], *, goal: bool = True
) -> list[tuple[int | None, float | None]]:
    """At what step, and after how many seconds, each lesson was passed."""
    points = [
        MetricPoint(step, round((BEGAN.timestamp() + step / 10) * 1000), value)
        for step, value in rows
    ]
    found = lessons_passed(run(status), config(goal=goal), points)
    assert [lesson.name for lesson in found] == ["a", "b", "c"]
    return [(lesson.step, lesson.seconds) for lesson in found]


def curve(*rows: tuple[int, float]) -> LearningCurve:
    return LearningCurve(tuple(rows), ())


def test_a_lesson_was_passed_when_the_next_was_first_reported() -> None:
    seconds = [(step, pytest.approx(step / 10)) for step in (200, 400, 500)]
    assert passed("FINISHED", NUMBERS) == seconds
    nothing = (None, None)
    assert passed("FAILED", NUMBERS)[2] == nothing  # its goal was not reached, or there is none
    assert passed("FINISHED", NUMBERS, goal=False)[2] == nothing
    assert passed("KILLED", []) == [nothing] * 3
    again = [(100, 1.0), (200, 2.0), (300, 1.0), (400, 2.0)]  # it counts from the last passing
    assert [step for step, _ in passed("FAILED", again)] == [400, None, None]
    assert passed("FAILED", again[:3]) == [nothing] * 3


def test_a_win_rate_holds_until_the_next_however_often_it_was_reported() -> None:
    stairs = curve((10, 0.0), (20, 0.5), (40, 1.0))
    assert mean_win_rate(stairs, 10, 40) == pytest.approx((0.0 * 10 + 0.5 * 20) / 30)
    assert mean_win_rate(stairs, 15, 25) == pytest.approx((0.0 * 5 + 0.5 * 5) / 10)
    later = curve((10, 0.3), (20, 0.5), (40, 1.0))
    assert mean_win_rate(later, 30, 50) == pytest.approx((0.5 * 10 + 1.0 * 10) / 20)
    assert mean_win_rate(stairs, 20, 60) == pytest.approx((0.5 * 20 + 1.0 * 20) / 40)
    seldom, often = curve((0, 0.2), (10, 0.8)), curve((0, 0.2), (4, 0.2), (10, 0.8), (15, 0.8))
    assert mean_win_rate(seldom, 2, 20) == pytest.approx(mean_win_rate(often, 2, 20))


def test_curves_share_the_steps_that_all_have_and_have_no_mean_without() -> None:
    first = curve((5, 0.1), (50, 0.2))
    assert common_steps([first, curve((10, 0.1), (90, 0.2))]) == (10, 50)
    apart = [first, curve((60, 0.1), (90, 0.2))]
    assert common_steps(apart) is None
    assert common_steps([first, curve()]) is None
    assert mean_curve(apart) is None
    assert mean_curve([curve()]) is None


def test_the_mean_is_taken_where_all_curves_are_known() -> None:
    both = [curve((0, 0.0), (10, 1.0)), curve((5, 0.5), (20, 0.5))]
    steps, middle, lower, upper = mean_curve(both, points=3)
    np.testing.assert_allclose(steps, [5.0, 7.5, 10.0])
    np.testing.assert_allclose(middle, [0.5, 0.625, 0.75])
    assert np.isnan(lower[0]), "seeds that are alike say nothing of others"
    assert (lower[1:] <= middle[1:]).all()
    assert (middle[1:] <= upper[1:]).all()
    assert (lower[-1], upper[-1]) == (0.0, 1.0), "a win rate has no interval beyond these"
    _, middle, lower, _ = mean_curve([curve((0, 0.2), (4, 0.4))], points=2)
    np.testing.assert_allclose(middle, [0.2, 0.4])
    assert np.isnan(lower).all(), "one seed has a line and no interval"


SVG = "{http://www.w3.org/2000/svg}"


def group(drawn: str, name: str) -> ElementTree.Element:
    (found,) = (one for one in ElementTree.fromstring(drawn).iter() if one.get("id") == name)
    return found


def texts(drawn: str) -> list[str | None]:
    return [one.text for one in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def intervals(*values: float) -> list[Interval]:
    return [Interval(f"<{at}> $x$", at, at - 0.1, at + 0.1, "#123456") for at in values]


def test_the_axis_says_which_win_rate_is_drawn(tmp_path: Path) -> None:
    for measure, text in (
        (names.EVAL_WIN_RATE, "win rate in evaluation"),
        (names.LEARNING_WIN_RATE, "win rate while learning"),
        (names.LESSON_WIN_RATE, "win rate in the lesson"),
    ):
        drawn = replace(curve((0, 0.2), (4_000_000, 0.4)), measure=measure)
        draw_curves({"one": [drawn]}, tmp_path / "curve.svg")
        shown = (tmp_path / "curve.svg").read_text()
        assert text in shown
        assert "4,000,000" in shown


def test_dots_lie_in_the_order_of_their_values_and_names_are_no_markup() -> None:
    drawn = interval_chart(intervals(0.2, 0.7), low=0.0, high=1.0, zero=0.5)
    first, second = (next(group(drawn, f"value-{n}").iter(f"{SVG}use")) for n in (0, 1))
    assert float(first.get("x", 0)) < float(second.get("x", 0))
    assert float(first.get("y", 0)) < float(second.get("y", 0))
    assert {"<0.2> $x$", "<0.7> $x$"} <= set(texts(drawn))


def test_the_same_chart_is_the_same_text_without_a_date_also_of_one_value_without_width() -> None:
    one, two = (interval_chart(intervals(0.3), low=0.0, high=1.0, zero=None) for _ in range(2))
    assert one == two
    assert "<dc:date>" not in one
    assert interval_chart(intervals(0.0), low=0.0, high=0.0, zero=0.0).endswith("</svg>\n")


def test_a_curve_holds_its_value_until_the_next_and_one_without_points_has_a_name() -> None:
    drawn = curve_chart(
        [
            StepCurve("a", [(0.0, 0.0), (50.0, 1.0), (100.0, 1.0)], "#111111", [50.0]),
            StepCurve("b", [], "#222222"),
        ]
    )
    path = next(group(drawn, "curve-0").iter(f"{SVG}path")).get("d", "")
    numbers = [float(part) for part in path.replace("M", " ").replace("L", " ").split()]
    x, y = numbers[::2], numbers[1::2]
    assert (y[0], x[1]) == (y[1], x[2])  # level up to the next point, then straight up
    assert x[3] - x[2] == x[1] - x[0]
    assert {"a", "b", "environment steps; ticks: a lesson was passed"} <= set(texts(drawn))


def test_a_trail_has_a_dot_and_a_bar_at_each_value() -> None:
    points = [(0.0, 1000.0, 900.0, 1050.0), (2e6, 1300.0, 1250.0, 1350.0)]
    drawn = trail_chart([Trail("run a", points, "#111111")])
    dots = list(group(drawn, "trail-0").iter(f"{SVG}use"))
    assert len(dots) == 2
    assert float(dots[0].get("x", 0)) < float(dots[1].get("x", 0))
    assert float(dots[0].get("y", 0)) > float(dots[1].get("y", 0))  # y falls as ratings rise
    assert {"run a", "environment steps", "rating", "2M"} <= set(texts(drawn))
