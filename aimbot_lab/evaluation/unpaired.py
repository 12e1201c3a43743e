"""Two players on episodes of their own: how much better is one, and could that be chance?

For worlds that do not repeat an episode from its seed: nothing ties the n-th episode of one player
to the n-th of the other.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

from aimbot_lab.evaluation.paired import LEVEL, POWER, Interval
from aimbot_lab.foundation.world import BoolArray


class Wins(NamedTuple):
    """How many of `episodes` each player won."""

    episodes: int  # of each
    first: int
    second: int

    @property
    def difference(self) -> float:
        """Win rate of the second player less that of the first."""
        return (self.second - self.first) / self.episodes


def count_wins(first: BoolArray, second: BoolArray) -> Wins:
    """The wins of two players' outcomes [N]. Raises ValueError where they did not play as many."""
    if first.shape != second.shape:
        raise ValueError(f"one played {len(first)} episodes, the other {len(second)}")
    return Wins(len(first), int(first.sum()), int(second.sum()))


def difference_interval(wins: Wins, *, level: float = LEVEL) -> Interval:
    """The interval of the difference, adjusted Wald: with one win and one loss more of each player.

    Source: Agresti and Caffo 2000, doi:10.1080/00031305.2000.10474560.
    """
    first, second = _adjusted(wins)
    z = NormalDist().inv_cdf(1 - level / 2)
    half = z * math.sqrt(_variance(first, second) / (wins.episodes + 2))
    return Interval(max(-1.0, second - first - half), min(1.0, second - first + half))


def fisher(wins: Wins) -> float:
    """The two-sided p-value of Fisher's test, mid-p: an imbalance like this one counts half.

    Given how many of all episodes were won, who won them is then as drawn without replacement.
    Where all were won, or none, it is 1.
    """
    n, total, k = wins.episodes, wins.first + wins.second, min(wins.first, wins.second)
    if total in (0, 2 * n):
        return 1.0
    larger = 2 * sum(_drawn(n, total, smaller) for smaller in range(max(total - n, 0), k))
    return min(larger + _drawn(n, total, k) * (0.5 if 2 * k == total else 1.0), 1.0)


def episodes_to_find(wins: Wins, *, level: float = LEVEL, power: float = POWER) -> int | None:
    """Episodes of each player with which a difference as large as this one is found with `power`.

    None where none was seen. Source: Fleiss 1981, Statistical Methods for Rates and Proportions.
    """
    d = abs(wins.difference)
    if d == 0:
        return None
    first, second = wins.first / wins.episodes, wins.second / wins.episodes
    mean = (first + second) / 2
    z = NormalDist().inv_cdf(1 - level / 2) * math.sqrt(_variance(mean, mean))
    z += NormalDist().inv_cdf(power) * math.sqrt(_variance(first, second))
    return math.ceil((z / d) ** 2)


def episodes_to_rule_out(
    wins: Wins, margin: float, *, level: float = LEVEL, power: float = POWER
) -> int:
    """Episodes of each with which the interval lies within plus or minus `margin`, with `power`.

    That is if the players are as good and win as many in all as they do here; see
    `paired.episodes_to_rule_out`.
    """
    mean = sum(_adjusted(wins)) / 2
    z = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf((1 + power) / 2)
    return math.ceil(_variance(mean, mean) * (z / margin) ** 2)


def _adjusted(wins: Wins) -> tuple[float, float]:
    n = wins.episodes + 2
    return (wins.first + 1) / n, (wins.second + 1) / n


def _variance(first: float, second: float) -> float:
    """Of the difference between an episode's outcome of one and of the other."""
    return first * (1 - first) + second * (1 - second)


def _drawn(n: int, total: int, k: int) -> float:
    """The chance that k of `total` won episodes are of one player, who played half of all 2 n."""
    return math.exp(_log_choose(n, k) + _log_choose(n, total - k) - _log_choose(2 * n, total))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
