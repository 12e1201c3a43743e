"""Ratios of measurements that took turns, with their uncertainty."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from aimbot_lab.foundation.statistics.intervals import student_quantile

CONFIDENCE = 0.95


class MeanRatio(NamedTuple):
    """A geometric mean with its 95 % interval."""

    mean: float
    lower: float  # NaN of a single ratio
    upper: float


def mean_ratio(ratios: Sequence[float]) -> MeanRatio:
    """The geometric mean of one or more `ratios`, by Student's t of their logarithms."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = fmean(logs)
    if len(logs) < 2:
        return MeanRatio(math.exp(mean), math.nan, math.nan)
    width = student_quantile(0.5 + CONFIDENCE / 2, len(logs) - 1)
    half = width * stdev(logs, mean) / math.sqrt(len(logs))
    return MeanRatio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))
