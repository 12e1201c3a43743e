"""Intervals of rates and means, and the measures that a world declares of its episodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MIN_EPISODES = 30  # with fewer, a share of won episodes is not tracked as a win rate


class WinRate(NamedTuple):
    """A share of won episodes and its interval; without episodes the share is None."""

    win_rate: float | None
    lower: float
    upper: float


UNKNOWN = WinRate(None, 0.0, 1.0)


def wilson(wins: float, episodes: int, *, confidence: float = 0.95) -> WinRate:
    """The win rate of `wins` in `episodes` with its Wilson score interval.

    Unlike the normal interval it stays within 0 and 1 and is not empty at 0 or all wins. A draw
    may be half a win, for which it is wider than it need be.
    Raises ValueError unless 0 <= wins <= episodes and 0 < confidence < 1.
    Source: Wilson 1927, doi:10.1080/01621459.1927.10502953.
    """
    if not 0 <= wins <= episodes:
        raise ValueError(f"wins must lie between 0 and the {episodes} episodes (got {wins})")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1 (got {confidence})")
    if episodes == 0:
        return UNKNOWN
    rate = wins / episodes
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    weight = z * z / episodes
    centre = (rate + weight / 2) / (1 + weight)
    half = z * sqrt(rate * (1 - rate) / episodes + weight / (4 * episodes)) / (1 + weight)
    return WinRate(rate, max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half)))


def are_alike(values: Sequence[float]) -> bool:
    """Whether `values` of trainings differ by no more than rounding.

    An interval of them would have no width, but that a few trainings came to the same is no proof
    that the next one will.
    """
    return max(values) - min(values) <= 1e-9 * max(map(abs, values))


class MeanInterval(NamedTuple):
    """A mean and its interval; of a single value there is none."""

    mean: float
    lower: float | None
    upper: float | None


def difference_of_means(
    first: Sequence[float], second: Sequence[float], *, confidence: float = 0.95
) -> MeanInterval:
    """The mean of `second` less that of the independent `first`, with its normal interval."""
    one, two = (mean_interval(values, confidence=confidence) for values in (first, second))
    mean = two.mean - one.mean
    if one.upper is None or two.upper is None:
        return MeanInterval(mean, None, None)
    half = hypot(one.upper - one.mean, two.upper - two.mean)
    return MeanInterval(mean, mean - half, mean + half)


def mean_interval(values: Sequence[float], *, confidence: float = 0.95) -> MeanInterval:
    """The mean of `values`, of which there is one at least, with its normal interval.

    That is mean +- z s / sqrt(n) with the sample's standard deviation s: as right as the central
    limit theorem is for n episodes.
    """
    mean = fmean(values)
    if len(values) < 2:
        return MeanInterval(mean, None, None)
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * stdev(values, mean) / sqrt(len(values))
    return MeanInterval(mean, mean - half, mean + half)


def student_errors(count: int, *, confidence: float = 0.95) -> float:
    """Half the width of Student's interval of the mean of `count` values, two at least.

    In their sample standard deviations: t(1/2 + confidence/2, count - 1) / sqrt(count).
    """
    from scipy.special import stdtrit  # takes most of a second to load

    return float(stdtrit(count - 1, 0.5 + confidence / 2)) / sqrt(count)


Float64Array = npt.NDArray[np.float64]
Columns = Mapping[str, Float64Array]  # [E] each


@dataclass(frozen=True)
class Measure:
    """A number of a set of episodes that tables, JSON and tracking show; a mean where not said."""

    name: str  # in JSON
    column: str  # of the episodes
    head: str = ""  # of its column in a table; empty: it stands in none
    over: str = ""  # column that divides it; a share of 0 is 1
    only: str = ""  # column; of those episodes alone in which that is not 0
    beside: str = ""  # column whose mean a table shows with it: 3.2 of 5.0
    median: bool = False
    interval: bool = False  # whether the mean has a 95 % interval, and differences are shown
    decimals: int = 1  # in a table
    training: str = ""  # metric of the training's own episodes; empty: not tracked
    evaluation: str = ""  # metric of those played while it trains

    def values(self, columns: Columns) -> Float64Array:
        """Its value in each episode that it is of."""
        found = columns[self.column]
        if self.over:
            whole = columns[self.over]
            found = np.divide(found, whole, out=np.ones_like(whole), where=whole != 0)
        return found[columns[self.only] != 0] if self.only else found


def measured_by_name(
    measures: Sequence[Measure], parts: Sequence[Columns]
) -> dict[str, float | None]:
    """Each of `measures` over all `parts` by its name; intervals as NAME_lower and NAME_upper."""
    if not measures:
        return {}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found: dict[str, float | None] = {}
    for measure in measures:
        values = measure.values(columns)
        value = lower = upper = None
        if len(values) and measure.median:
            value = float(np.median(values))
        elif len(values) and measure.interval:
            value, lower, upper = mean_interval(values.tolist())
        elif len(values):
            value = float(values.mean())
        found[measure.name] = value
        if measure.interval:
            found |= {f"{measure.name}_lower": lower, f"{measure.name}_upper": upper}
    return found


def shown(measure: Measure, numbers: Mapping[str, float | None]) -> str:
    """A table's text of `measure` from what `measured_by_name` gave."""
    value, places = numbers.get(measure.name), measure.decimals
    if value is None:
        return "-"
    text = f"{value:.{places}f}"
    lower, upper = (numbers.get(f"{measure.name}_{end}") for end in ("lower", "upper"))
    if lower is not None and upper is not None:
        text += f" [{lower:.{places}f}, {upper:.{places}f}]"
    other = numbers.get(measure.beside) if measure.beside else None
    return text if other is None else f"{text} of {other:.{places}f}"
