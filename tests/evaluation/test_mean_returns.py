"""The mean return of an evaluation has an interval that holds as often as it says."""

from collections.abc import Callable

import numpy as np
import pytest

from aimbot_lab.evaluation.episodes import CellEpisodes, score_all
from aimbot_lab.foundation.episodes import Cell, mean_interval

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
# How returns of 200 episodes, the default of `evaluate`, may lie, with their true mean.
RETURNS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, shape: rng.normal(250, 30, shape), 250.0),
    "skewed": (lambda rng, shape: rng.exponential(2.0, shape), 2.0),
    "a few failures": (
        lambda rng, shape: np.where(
            rng.random(shape) < 0.9, rng.normal(250, 30, shape), rng.normal(-100, 50, shape)
        ),
        215.0,
    ),
    "goal or nothing": (lambda rng, shape: (rng.random(shape) < 0.9) * 1.0, 0.9),
}


@pytest.mark.parametrize("name", RETURNS)
def test_the_interval_of_a_mean_return_holds_in_94_percent_of_evaluations(name: str) -> None:
    draw, mean = RETURNS[name]
    samples = draw(np.random.default_rng(1), (1500, 200)).tolist()
    held = [one.lower <= mean <= one.upper for one in map(mean_interval, samples)]  # type: ignore[operator]
    assert np.mean(held) >= 0.94


def test_returns_of_symmetric_episodes_have_student_s_interval() -> None:
    found = mean_interval([-1.0, 0.0, 1.0, -1.0, 0.0, 1.0, -1.0, 0.0, 1.0, 0.0, 0.0])
    assert found.mean == 0.0
    assert found.upper == -found.lower == pytest.approx(0.5203, abs=1e-3)  # type: ignore[operator]
    assert mean_interval([2.0]) == (2.0, None, None)
    assert mean_interval([2.0, 2.0, 2.0]) == (2.0, 2.0, 2.0)


def test_a_score_has_the_mean_return_with_its_interval_where_returns_are_known() -> None:
    won, returns = np.array([True, False, True]), np.array([1.0, 2.0, 6.0])
    played = CellEpisodes(Cell("task", 0), won, np.zeros(3), returns)
    score = score_all([played])
    assert (score.mean_return, score.return_lower, score.return_upper) == mean_interval([1, 2, 6])
    unknown = CellEpisodes(Cell("task", 0), won, np.zeros(3), np.full(3, np.nan))
    assert score_all([unknown]).return_lower is None
