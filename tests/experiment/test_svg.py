"""Charts: scales, and that what is drawn lies where it should."""

import re
from xml.etree import ElementTree

import pytest

from aimbot_lab.experiment.judging.svg import (
    Line,
    Mark,
    Scale,
    interval_chart,
    line_chart,
    short_number,
)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.07, 0.07), (0, 2_331_648), (3, 3), (-5, 90)])
def test_ticks_are_round_few_and_inside(low: float, high: float) -> None:
    ticks = Scale(low, high, 0, 100).ticks()
    assert 1 <= len(ticks) <= 11
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    assert all(len(short_number(tick)) <= 6 for tick in ticks)


def test_a_scale_goes_from_end_to_end_and_stops_there() -> None:
    scale = Scale(2.0, 4.0, 10.0, 30.0)
    assert [scale(value) for value in (2.0, 3.0, 4.0, -99.0, 99.0)] == [10, 20, 30, 10, 30]
    assert Scale(1.0, 1.0, 0.0, 10.0)(1.0) == 0.0


def test_marks_lie_in_the_order_of_their_values_and_names_are_escaped() -> None:
    marks = [Mark(f"<{value}>", value, value - 0.1, value + 0.1, "#123456") for value in (0.2, 0.7)]
    drawn = interval_chart(marks, low=0.0, high=1.0, zero=0.5)
    ElementTree.fromstring(drawn)
    first, second = map(float, re.findall(r'<circle cx="([\d.]+)"', drawn))
    assert first < second
    assert "&lt;0.2&gt;" in drawn


def test_a_line_holds_its_value_until_the_next() -> None:
    drawn = line_chart(
        [Line("a", [(0.0, 0.0), (50.0, 1.0), (100.0, 1.0)], "#111", [50.0]), Line("b", [], "#222")],
        x_name="steps",
    )
    ElementTree.fromstring(drawn)
    (path,) = re.findall(r'd="(M[^"]*H[^"]*)"', drawn)
    start, first, second = re.fullmatch(r"M([\d.]+),.*?H([\d.]+)V.*?H([\d.]+)V.*", path).groups()
    assert float(second) - float(first) == pytest.approx(float(first) - float(start), abs=0.2)
