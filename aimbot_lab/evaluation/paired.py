"""Two players on the same episodes: how much better is one, and could that be chance?

Each episode is a pair. Only pairs that one player wins and the other loses tell them apart.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.world import BoolArray

LEVEL = 0.05  # of a test; intervals hold 1 - LEVEL
POWER = 0.8  # with which a further comparison should find what there is


class Pairs(NamedTuple):
    """How many of `episodes` pairs each player won alone."""

    episodes: int
    first_only: int
    second_only: int

    @property
    def difference(self) -> float:
        """Win rate of the second player less that of the first."""
        return (self.second_only - self.first_only) / self.episodes


class Interval(NamedTuple):
    """The values between which a difference lies."""

    lower: float
    upper: float


def count_pairs(first: BoolArray, second: BoolArray) -> Pairs:
    """The pairs of two players' outcomes [N] in the same episodes.

    Raises ValueError where they did not play as many.
    """
    if first.shape != second.shape:
        raise ValueError(f"{len(first)} episodes can't be paired with {len(second)}")
    return Pairs(len(first), int((first & ~second).sum()), int((second & ~first).sum()))


def difference_interval(pairs: Pairs, *, level: float = LEVEL) -> Interval:
    """The interval of the difference, adjusted Wald.

    With a pair of each kind added, half of its weight to each side: also where no pair differs it
    has a width. Source: Bonett and Price 2012, doi:10.3102/1076998611411915.
    """
    n = pairs.episodes + 2
    first, second = (pairs.first_only + 1) / n, (pairs.second_only + 1) / n
    middle = second - first
    z = NormalDist().inv_cdf(1 - level / 2)
    half = z * math.sqrt((first + second - middle**2) / n)
    return Interval(max(-1.0, middle - half), min(1.0, middle + half))


def tails(pairs: Pairs) -> tuple[float, float]:
    """If both players are as good: the chance of a larger imbalance than this, and of this one.

    Given how many pairs differ, who won them alone is then as the toss of a fair coin.
    """
    n, k = pairs.first_only + pairs.second_only, min(pairs.first_only, pairs.second_only)
    at = _coin(n, k) * (1 if 2 * k == n else 2)
    larger = 2 * sum(_coin(n, smaller) for smaller in range(k))
    return min(larger, 1.0), min(at, 1.0)


def mcnemar(pairs: Pairs) -> float:
    """The two-sided p-value of McNemar's test, mid-p: an imbalance like this one counts half.

    The exact test, which counts it whole, errs far less often than its level says and so finds
    less; mid-p keeps to it closely. Without a pair that differs it is 1. Source: Fagerland,
    Lydersen and Laake 2013, doi:10.1186/1471-2288-13-91.
    """
    if pairs.first_only == pairs.second_only == 0:
        return 1.0
    larger, at = tails(pairs)
    return larger + at / 2


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p-values adjusted for being many, by Holm's step-down method, in their own order.

    Calling a difference real where its adjusted value is at most a level errs in any of them
    with at most that chance, however they hang together.
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    stepped = np.maximum.accumulate(np.asarray(p_values)[order] * factors)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(stepped, 1.0)
    return tuple(adjusted.tolist())


def episodes_to_find(pairs: Pairs, *, level: float = LEVEL, power: float = POWER) -> int | None:
    """Episodes with which a difference as large as the one seen is found with `power`.

    None where none was seen. Source: Connor 1987, doi:10.2307/2531961.
    """
    d = abs(pairs.difference)
    if d == 0:
        return None
    differing = (pairs.first_only + pairs.second_only) / pairs.episodes
    z = NormalDist().inv_cdf(1 - level / 2) * math.sqrt(differing)
    z += NormalDist().inv_cdf(power) * math.sqrt(differing - d * d)
    return math.ceil((z / d) ** 2)


def episodes_to_rule_out(
    pairs: Pairs, margin: float, *, level: float = LEVEL, power: float = POWER
) -> int:
    """Episodes with which the interval lies within plus or minus `margin`, with `power`.

    That is if the players are as good, and differ in as many pairs as they do here. Source: the
    two one-sided tests of Schuirmann 1987, with the variance of a paired difference.
    """
    differing = (pairs.first_only + pairs.second_only + 2) / (pairs.episodes + 2)
    z = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf((1 + power) / 2)
    return math.ceil(differing * (z / margin) ** 2)


def _coin(n: int, k: int) -> float:
    """The chance of k heads in n tosses of a fair coin."""
    log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
    return math.exp(log)
