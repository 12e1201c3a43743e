"""Aggregates over trainings against closed forms."""

import math
from itertools import product

import numpy as np
import pytest

from aimbot_lab.experiment.analysis.learning_curve import (
    Estimate,
    estimate,
    interquartile_mean,
    mean,
    probability_of_improvement,
)


def test_the_interquartile_mean_cuts_a_quarter_at_each_end() -> None:
    assert interquartile_mean(np.array([[0.0, 1.0], [2.0, 100.0]])) == 1.5
    assert interquartile_mean(np.arange(9.0).reshape(3, 3)) == 4.0  # 2 of 9 are cut at each end
    assert interquartile_mean(np.array([[1.0], [2.0], [6.0]])) == 3.0  # too few to cut any


def test_the_interquartile_mean_ignores_outliers_and_moves_with_its_scores() -> None:
    scores = np.random.default_rng(1).random((8, 5))
    wild = np.sort(scores, axis=None)
    wild[:5], wild[-5:] = -1e6, 1e6
    assert interquartile_mean(wild) == pytest.approx(interquartile_mean(scores))
    assert interquartile_mean(3 * scores + 1) == pytest.approx(3 * interquartile_mean(scores) + 1)


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
    assert estimate(mean, np.array([[0.0], [1.0]])) == Estimate(0.5, 0.0, 1.0)


def test_the_bootstrap_interval_of_a_mean_has_the_standard_errors_width() -> None:
    scores = np.random.default_rng(3).normal(size=(400, 1))
    found = estimate(mean, scores, resamples=4000)
    error = float(scores.std()) / math.sqrt(len(scores))
    assert found.upper - found.lower == pytest.approx(2 * 1.96 * error, rel=0.06)


def test_cells_of_one_training_are_resampled_together() -> None:
    column = np.random.default_rng(4).normal(size=(30, 1))
    alone, copied = estimate(mean, column), estimate(mean, np.repeat(column, 9, axis=1))
    assert copied.lower == pytest.approx(alone.lower)
    assert copied.upper == pytest.approx(alone.upper)


def test_the_interval_repeats_and_one_training_has_none() -> None:
    scores = np.random.default_rng(5).random((5, 2))
    assert estimate(interquartile_mean, scores) == estimate(interquartile_mean, scores)
    single = estimate(mean, scores[:1])
    assert single.value == pytest.approx(scores[0].mean())
    assert math.isnan(single.lower)
    assert math.isnan(single.upper)


def test_groups_are_resampled_each_by_itself() -> None:
    low, high = np.zeros((3, 2)), np.array([[1.0, 1.0], [2.0, 2.0]])
    low[0] = 1.5  # which beats one of the other group, where it is drawn
    found = estimate(probability_of_improvement, high, low)
    assert found.value == pytest.approx(5 / 6)
    assert found.lower < found.value < found.upper == 1.0


def test_trainings_that_are_all_alike_have_no_interval() -> None:
    alike, others = np.full((3, 2), 0.9), np.zeros((2, 2))
    for statistic, groups in ((mean, (alike,)), (probability_of_improvement, (alike, others))):
        found = estimate(statistic, *groups)
        assert math.isnan(found.lower)
        assert math.isnan(found.upper)
