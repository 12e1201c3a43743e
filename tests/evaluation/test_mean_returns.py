"""The mean return of an evaluation has an interval that holds as often as it says."""

from collections.abc import Callable

import numpy as np
import pytest

from aimbot_lab.evaluation.episodes import CellEpisodes, score_all
from aimbot_lab.foundation.episodes import Cell, mean_interval

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
COUNTS = 10, 20, 50, 200  # of episodes


def mixed(share: float, high: float, low: float) -> tuple[Draw, float]:
    """Some episodes fail, or do another thing, and return less."""

    def drawn(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        chosen = rng.random(shape) < share
        return np.where(chosen, rng.normal(high, 30, shape), rng.normal(low, 30, shape))

    return drawn, share * high + (1 - share) * low


# How returns may lie with their true mean, and the fewest episodes of which the interval holds.
RETURNS: dict[str, tuple[tuple[Draw, float], int]] = {
    "normal": ((lambda rng, shape: rng.normal(250, 30, shape), 250.0), 10),
    "skewed": ((lambda rng, shape: rng.exponential(2.0, shape), 2.0), 10),
    "more skewed": ((lambda rng, shape: rng.gamma(0.5, 1.0, shape), 0.5), 10),
    "lognormal": ((lambda rng, shape: rng.lognormal(0.0, 1.0, shape), float(np.exp(0.5))), 50),
    "two kinds": (mixed(0.5, 250, -100), 10),
    "some failures": (mixed(0.8, 250, -100), 20),
    "few failures": (mixed(0.9, 250, -100), 50),
    "goal or nothing": ((lambda rng, shape: (rng.random(shape) < 0.9) * 1.0, 0.9), 50),
}


@pytest.mark.parametrize("name", RETURNS)
def test_the_interval_of_a_mean_return_holds_in_94_percent_of_evaluations(name: str) -> None:
    (draw, mean), least = RETURNS[name]
    for count in [count for count in COUNTS if count >= least]:
        samples = draw(np.random.default_rng(1), (250_000 // (count + 50), count)).tolist()
        found = [mean_interval(one) for one in samples]
        held = [one.lower <= mean <= one.upper for one in found]  # type: ignore[operator]
        assert np.mean(held) >= 0.94, count


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
