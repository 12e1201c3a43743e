"""The time that a sweep still takes, by the speed of its trials."""

from types import SimpleNamespace
from typing import Any

import pytest

from aimbot_lab.sweep.report import Pace


def estimates(course: list[tuple[float, int, float]]) -> list[float | None]:
    """What is left of ten trials at each moment: seconds, ended trials, share of one at work."""
    clock = iter([0.0, *(moment for moment, _, _ in course)])
    pace = Pace(lambda: next(clock))
    found = []
    for _, ended, share in course:
        report: Any = SimpleNamespace(status="searching", ended=ended, total=10)
        found.append(pace.seconds_left(report, {("search", ended): share}))
    return found


def test_what_comes_before_the_first_progress_does_not_count() -> None:
    """Workers start and compile for a minute; then a trial takes ten seconds."""
    course = [(1.0, 0, 0.0), (60.0, 0, 0.0), (61.0, 0, 0.1), (65.0, 0, 0.5), (80.0, 2, 0.0)]
    before, still, first, later, last = estimates(course)
    assert (before, still) == (None, None)
    assert (first, later, last) == pytest.approx((99.0, 95.0, 80.0))


def test_what_was_done_before_this_process_does_not_count() -> None:
    assert estimates([(5.0, 4, 0.0), (15.0, 5, 0.0)]) == [None, pytest.approx(50.0)]


def test_a_trial_that_begins_again_is_no_progress() -> None:
    course = [(1.0, 0, 0.4), (2.0, 0, 0.0), (12.0, 0, 1.0)]
    assert estimates(course) == [None, None, pytest.approx(90.0)]
