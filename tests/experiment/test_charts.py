"""Charts: what is drawn lies where it should, and names stay text."""

from xml.etree import ElementTree

from aimbot_lab.experiment.analysis.charts import (
    Interval,
    StepCurve,
    Trail,
    curve_chart,
    interval_chart,
    trail_chart,
)

SVG = "{http://www.w3.org/2000/svg}"


def group(drawn: str, name: str) -> ElementTree.Element:
    (found,) = (one for one in ElementTree.fromstring(drawn).iter() if one.get("id") == name)
    return found


def texts(drawn: str) -> list[str | None]:
    return [one.text for one in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def intervals(*values: float) -> list[Interval]:
    return [
        Interval(f"<{value}> $x$", value, value - 0.1, value + 0.1, "#123456") for value in values
    ]


def test_dots_lie_in_the_order_of_their_values_and_names_are_no_markup() -> None:
    drawn = interval_chart(intervals(0.2, 0.7), low=0.0, high=1.0, zero=0.5)
    first, second = (next(group(drawn, f"value-{n}").iter(f"{SVG}use")) for n in (0, 1))
    assert float(first.get("x", 0)) < float(second.get("x", 0))
    assert float(first.get("y", 0)) < float(second.get("y", 0))
    assert {"<0.2> $x$", "<0.7> $x$"} <= set(texts(drawn))


def test_a_chart_of_one_value_without_width_is_drawn() -> None:
    assert interval_chart(intervals(0.0), low=0.0, high=0.0, zero=0.0).endswith("</svg>\n")


def test_a_curve_holds_its_value_until_the_next_and_one_without_points_has_a_name() -> None:
    drawn = curve_chart(
        [
            StepCurve("a", [(0.0, 0.0), (50.0, 1.0), (100.0, 1.0)], "#111111", [50.0]),
            StepCurve("b", [], "#222222"),
        ],
        x_name="steps",
    )
    path = next(group(drawn, "curve-0").iter(f"{SVG}path")).get("d", "")
    numbers = [float(part) for part in path.replace("M", " ").replace("L", " ").split()]
    x, y = numbers[::2], numbers[1::2]
    assert (y[0], x[1]) == (y[1], x[2])  # level up to the next point, then straight up
    assert x[3] - x[2] == x[1] - x[0]
    assert {"a", "b", "steps"} <= set(texts(drawn))


def test_the_same_chart_is_the_same_text_without_a_date() -> None:
    one, two = (interval_chart(intervals(0.3), low=0.0, high=1.0, zero=None) for _ in range(2))
    assert one == two
    assert "metadata" not in one or "date" not in one


def test_a_trail_has_a_dot_and_a_bar_at_each_value() -> None:
    points = [(0.0, 1000.0, 900.0, 1050.0), (2e6, 1300.0, 1250.0, 1350.0)]
    drawn = trail_chart([Trail("run a", points, "#111111")], x_name="steps", y_name="rating")
    dots = list(group(drawn, "trail-0").iter(f"{SVG}use"))
    assert len(dots) == 2
    assert float(dots[0].get("x", 0)) < float(dots[1].get("x", 0))
    assert float(dots[0].get("y", 0)) > float(dots[1].get("y", 0))  # y falls as ratings rise
    assert {"run a", "steps", "rating", "2M"} <= set(texts(drawn))
