"""Means of trainings and of returns with their intervals, and temperatures."""

import copy
import json
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import aimbot_lab
from aimbot_lab.evaluation.episodes import CellEpisodes, score_all
from aimbot_lab.evaluation.temperature import COOLER, LIKELIEST, SAMPLED, Temperature
from aimbot_lab.experiment.analysis.learning_curve import (
    Estimate,
    estimate,
    interquartile_mean,
    mean,
    probability_of_improvement,
)
from aimbot_lab.foundation.episodes import Cell, mean_interval
from aimbot_lab.foundation.errors import ConfigurationError


def test_the_interquartile_mean_cuts_a_quarter_at_each_end() -> None:
    assert interquartile_mean(np.array([[0.0, 1.0], [2.0, 100.0]])) == 1.5
    assert interquartile_mean(np.arange(9.0).reshape(3, 3)) == 4.0  # 2 of 9 are cut at each end
    assert interquartile_mean(np.array([[1.0], [2.0], [6.0]])) == 3.0  # too few to cut any


def test_improvement_counts_pairs_and_halves_ties() -> None:
    first, second = np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [0.0]])
    won = sum((a > b) + 0.5 * (a == b) for a, b in product([1, 2, 3], [2, 0]))
    assert probability_of_improvement(first, second) == pytest.approx(won / 6)
    assert probability_of_improvement(first, first) == 0.5
    assert probability_of_improvement(first + 9, second) == 1.0


def test_improvement_is_the_mean_over_cells_and_turns_round() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.random((4, 3)), rng.random((6, 3))
    each = [probability_of_improvement(first[:, [k]], second[:, [k]]) for k in range(3)]
    assert probability_of_improvement(first, second) == pytest.approx(np.mean(each))
    assert probability_of_improvement(second, first) == pytest.approx(1 - np.mean(each))


def test_the_bootstrap_of_two_trainings_has_its_three_values() -> None:
    # The mean of two draws of {0, 1} is 0, 1/2 or 1, with chances 1/4, 1/2, 1/4.
    assert estimate(interquartile_mean, np.array([[0.0], [1.0]])) == Estimate(0.5, 0.0, 1.0)


def test_cells_of_one_training_are_resampled_together() -> None:
    column = np.random.default_rng(4).normal(size=(3, 1))  # of which no quarter is cut
    alone = estimate(interquartile_mean, column)
    copied = estimate(lambda scores: float(np.mean(scores)), np.repeat(column, 9, axis=1))
    assert copied.lower == pytest.approx(alone.lower)
    assert copied.upper == pytest.approx(alone.upper)


def test_the_interval_repeats_and_one_training_has_none() -> None:
    scores = np.random.default_rng(5).random((5, 2))
    assert estimate(interquartile_mean, scores) == estimate(interquartile_mean, scores)
    for single in (estimate(interquartile_mean, scores[:1]), mean(scores[:1])):
        assert single.value == pytest.approx(scores[0].mean())
        assert math.isnan(single.lower)
        assert math.isnan(single.upper)


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_the_interval_of_a_mean_holds_for_few_trainings(runs: int) -> None:
    rng = np.random.default_rng(3)
    found = [mean(rng.normal(0.5, 0.1, (runs, 1)) + np.array([0.0, 0.2])) for _ in range(2000)]
    held = [one.lower <= 0.6 <= one.upper for one in found]
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)


def test_groups_are_resampled_each_by_itself() -> None:
    low, high = np.zeros((3, 2)), np.array([[1.0, 1.0], [2.0, 2.0]])
    low[0] = 1.5  # which beats one of the other group, where it is drawn
    found = estimate(probability_of_improvement, high, low)
    assert found.value == pytest.approx(5 / 6)
    assert found.lower < found.value < found.upper == 1.0


def test_trainings_that_are_all_alike_have_no_interval() -> None:
    alike, others = np.full((3, 2), 0.9), np.zeros((2, 2))
    for found in (mean(alike), estimate(probability_of_improvement, alike, others)):
        assert math.isnan(found.lower)
        assert math.isnan(found.upper)


@pytest.mark.parametrize("value", [float("nan"), -0.5, 11.0])
def test_what_is_no_temperature_is_refused_in_one_line(value: float) -> None:
    with pytest.raises(ConfigurationError, match=r"must be 0 .* or from 0\.01 to 10") as refused:
        Temperature(value)
    assert "\n" not in str(refused.value)


def test_a_temperature_has_a_label_and_is_a_number_in_json() -> None:
    labels = [way.label for way in (SAMPLED, LIKELIEST, COOLER, Temperature(0.25))]
    assert labels == ["sampled", "likeliest action", "temperature 0.5", "temperature 0.25"]
    assert json.dumps({"at": copy.deepcopy(COOLER)}) == '{"at": 0.5}'


def test_python_refuses_what_is_no_temperature_before_it_looks_for_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="temperature 20"):
        aimbot_lab.evaluate("missing", temperature=20, data_dir=tmp_path)


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
    "skewed": ((lambda rng, shape: rng.exponential(2.0, shape), 2.0), 10),
    "lognormal": ((lambda rng, shape: rng.lognormal(0.0, 1.0, shape), float(np.exp(0.5))), 50),
    "two kinds": (mixed(0.5, 250, -100), 10),
    "few failures": (mixed(0.9, 250, -100), 50),
    "goal or nothing": ((lambda rng, shape: (rng.random(shape) < 0.9) * 1.0, 0.9), 50),
}


@pytest.mark.parametrize("name", RETURNS)
def test_the_interval_of_a_mean_return_holds_in_94_percent_of_evaluations(name: str) -> None:
    (draw, mean), least = RETURNS[name]
    for count in [count for count in COUNTS if count >= least]:
        samples = draw(np.random.default_rng(1), (100_000 // (count + 50), count)).tolist()
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
