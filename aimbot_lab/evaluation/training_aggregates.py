"""Scores of several runs as one result: interquartile mean, bootstrap intervals, improvement.

Scores are arrays [R, C], one row per training, one column per cell (a task, in the words of the
source). Definitions are those of Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of
the Statistical Precipice", and of its library rliable, but for one: rliable resamples the runs of
each task by themselves, because there each is a training of its own. Here one agent plays all
cells, its scores rise and fall together, and so whole runs are resampled; the strata are the
configurations.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]  # [R, C]
Statistic = Callable[..., float]  # of as many arrays of scores as there are configurations
RESAMPLES = 2_000
LEVEL = 0.95


class Estimate(NamedTuple):
    """A value with its interval over runs; NaN where they do not vary."""

    value: float
    lower: float
    upper: float


def mean(scores: Scores) -> float:
    """The mean over runs and cells."""
    return float(np.mean(scores))


def interquartile_mean(scores: Scores) -> float:
    """The mean of the middle half of all scores [R, C]: a quarter is cut at each end.

    The cut is rounded down to whole scores: of fewer than four none is cut.
    """
    ordered = np.sort(scores, axis=None)
    cut = len(ordered) // 4
    return float(np.mean(ordered[cut : len(ordered) - cut]))


def probability_of_improvement(scores: Scores, others: Scores) -> float:
    """How probable it is that a training of `scores` [R, C] beats one of `others` [S, C].

    In each cell the share of all R x S pairs that are won, half of those that are even (the
    Mann-Whitney U statistic over R S), then the mean over cells.
    """
    pairs = scores[:, None, :] - others[None, :, :]  # [R, S, C]
    return float(np.mean((np.sign(pairs) + 1) / 2))


def estimate(
    statistic: Statistic, *groups: Scores, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """`statistic` of the groups [R, C], with its bootstrap percentile interval at 95 %.

    Each of `resamples` draws as many runs of each group as it has, with replacement. A
    single run in every group says nothing about others, nor do runs that are all alike:
    the interval is NaN.
    """
    value = statistic(*groups)
    if all(len(scores) < 2 for scores in groups):
        return Estimate(value, float("nan"), float("nan"))
    rng = np.random.default_rng(seed)
    drawn = [statistic(*(_resampled(scores, rng) for scores in groups)) for _ in range(resamples)]
    lower, upper = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    if lower == upper:
        return Estimate(value, float("nan"), float("nan"))
    return Estimate(value, float(lower), float(upper))


def _resampled(scores: Scores, rng: np.random.Generator) -> Any:
    return scores[rng.integers(len(scores), size=len(scores))]
