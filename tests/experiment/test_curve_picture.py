"""The mean of learning curves."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from aimbot_lab.experiment.analysis.learning_curve import (
    CurvePoint,
    LearningCurve,
    draw_curves,
    mean_curve,
)
from aimbot_lab.foundation import metric_names as names


def curve(*points: tuple[int, float]) -> LearningCurve:
    return LearningCurve(tuple(CurvePoint(*point) for point in points), ())


def test_the_mean_is_taken_where_all_curves_are_known() -> None:
    found = mean_curve([curve((0, 0.0), (10, 1.0)), curve((5, 0.5), (20, 0.5))], points=3)
    assert found is not None
    np.testing.assert_allclose(found.steps, [5.0, 7.5, 10.0])
    np.testing.assert_allclose(found.mean, [0.5, 0.625, 0.75])
    assert np.isnan(found.lower[0]), "seeds that are alike say nothing of others"
    assert (found.lower[1:] <= found.mean[1:]).all()
    assert (found.mean[1:] <= found.upper[1:]).all()
    assert (found.lower[-1], found.upper[-1]) == (0.5, 1.0)


def test_one_seed_has_a_line_and_no_interval() -> None:
    found = mean_curve([curve((0, 0.2), (4, 0.4))], points=2)
    assert found is not None
    np.testing.assert_allclose(found.mean, [0.2, 0.4])
    assert np.isnan(found.lower).all()


def test_curves_that_share_no_steps_have_no_mean() -> None:
    assert mean_curve([curve((0, 0.1), (1, 0.2)), curve((2, 0.1), (3, 0.2))]) is None
    assert mean_curve([curve()]) is None


def test_the_axis_says_which_win_rate_is_drawn(tmp_path: Path) -> None:
    for measure, text in (
        (names.EVAL_WIN_RATE, "win rate in evaluation"),
        (names.LEARNING_WIN_RATE, "win rate while learning"),
        (names.LESSON_WIN_RATE, "win rate in the lesson"),
    ):
        drawn = replace(curve((0, 0.2), (4_000_000, 0.4)), measure=measure)
        draw_curves({"one": [drawn]}, tmp_path / "curve.svg")
        assert text in (tmp_path / "curve.svg").read_text()
        assert "4,000,000" in (tmp_path / "curve.svg").read_text()
