"""What a trial gains over the defaults: intervals over pairs of trainings, and their power."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aimbot_lab.foundation.statistics.intervals import are_alike, student_errors

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Gain:
    """A mean difference over pairs of trainings on the same seeds."""

    mean: float
    lower: float | None  # None: of a single pair, or of pairs that are all alike
    upper: float | None


def mean_interval(
    values: Sequence[float], *, comparisons: int = 1
) -> tuple[float, float] | tuple[None, None]:
    """Student's t interval of the mean; (None, None) of a single value, or of equal ones.

    Values that happen to be equal say nothing about how much they vary. At 95 %, or of
    `comparisons` such intervals at 95 % for all together (Bonferroni). The trainings are what is
    drawn at random, so they are what is counted, not their episodes.
    """
    if len(values) < 2 or are_alike(values):
        return None, None
    half = _errors(len(values), comparisons) * statistics.stdev(values)
    mean = statistics.fmean(values)
    return mean - half, mean + half


def _errors(count: int, comparisons: int) -> float:
    """Half the width of the interval of `count` values, in their standard deviations."""
    return student_errors(count, confidence=1.0 - (1.0 - CONFIDENCE) / max(comparisons, 1))


def gain_over(own: Sequence[float], others: Sequence[float], *, comparisons: int) -> Gain:
    """What `own` trainings gain over `others` on the same seeds, one of `comparisons`."""
    pairs = [a - b for a, b in zip(own, others, strict=True)]
    return Gain(statistics.fmean(pairs), *mean_interval(pairs, comparisons=comparisons))


def found_share(
    measured: Sequence[float],
    factor: float,
    *,
    seeds: int,
    comparisons: int,
    limit: float = float("inf"),
    rounds: int = 1000,
    seed: int = 1,
) -> float:
    """How often a confirmation detects values that change each training by `factor`.

    A simulation: both arms are drawn with replacement from `measured`, the second multiplied by
    `factor` and cut at `limit`, as trainings are that never pass. Gives the share of `rounds`
    in which the interval of the gain excludes 0; with a factor of 1 it is the share of false
    findings.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.choice(np.asarray(measured, np.float64), size=(2, rounds, seeds))
    pairs = np.minimum(drawn[0] * factor, limit) - np.minimum(drawn[1], limit)
    half = _errors(seeds, comparisons) * pairs.std(axis=1, ddof=1)
    varied = np.ptp(pairs, axis=1) > 0
    return float(np.mean(varied & (np.abs(pairs.mean(axis=1)) > half)))
