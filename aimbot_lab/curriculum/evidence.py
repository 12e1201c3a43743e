"""Evidence that a win rate exceeds a threshold, valid however often one looks at it.

Against "the rate never exceeded `threshold`" (q below) a bettor stakes a fixed fraction f of
what a stake may be, 1/q: a win (x = 1) or loss (x = 0) multiplies the wealth by

    1 + (f / q) (x - q)        win: 1 + f (1 - q) / q, loss: 1 - f.

Averaged over a few f, the wealth is an e-process: it reaches 1/alpha with a chance of at most
alpha, ever (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by
betting", doi:10.1093/jrsssb/qkad009). A policy learns, so its bad beginning must not weigh for
ever: a fresh bettor starts every 256 episodes, the k-th (from 0) with the weight
1 / ((k + 1) (k + 2)). Those weights sum to 1 and a bettor who has not started holds 1, so the
weighted sum is an e-process again; restarts are those of e-detectors (Shin, Ramdas and Rinaldo
2024, "E-detectors", doi:10.51387/23-NEJSDS51), weighted for a bound that holds for all time.

All bettors with the same f gain the same from an episode, so one number per f, the log of
their weighted sum, is the whole state, and an episode costs the same after any number of them.

Nothing but x >= 0 is used of x, so the same bet serves any value that is never negative, such as
a reward counted from the lowest that there can be: 1 + (f / q) (x - q) is at least 1 - f, and at
most 1 on average while the mean of x is at most q.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Value = bool | float | npt.NDArray[np.bool_] | FloatArray

STAKES = (0.1, 0.2, 0.4, 0.8)
RESTART_EVERY = 256
_HALVINGS = 40  # of the range in which `proven` looks for a win rate


class Evidence(NamedTuple):
    """What the episodes so far have shown; `...` is () or the shape of parallel lessons."""

    log_wealth: FloatArray  # [..., stakes] log of the weighted sum over all started bettors
    episodes: int


@dataclass(frozen=True)
class EvidenceTest:
    """The test of one threshold at one alpha."""

    threshold: float
    alpha: float

    @cached_property
    def log_bound(self) -> float:
        """Log of the evidence that promotes."""
        return float(-np.log(self.alpha))

    def start(self, shape: tuple[int, ...] = ()) -> Evidence:
        """Evidence before the first episode, for one lesson or for `shape` parallel ones."""
        return Evidence(np.full((*shape, len(STAKES)), _log_weight(0)), 0)

    def fold(self, evidence: Evidence, value: Value) -> Evidence:
        """Evidence after one more episode; `value` is one or, [...], one per parallel lesson.

        Either whether it was won, or a number that is at least 0.
        """
        wealth = evidence.log_wealth + self._log_growth(value)
        episodes = evidence.episodes + 1
        if episodes % RESTART_EVERY == 0:
            wealth = np.logaddexp(wealth, _log_weight(episodes // RESTART_EVERY))
        return Evidence(wealth, episodes)

    def log_evidence(self, evidence: Evidence) -> FloatArray:
        """Log of the e-process, [...]."""
        return _mixture(evidence.log_wealth, evidence.episodes // RESTART_EVERY + 1)

    def proven(self, wins: IntArray, episodes: IntArray) -> tuple[float, int]:
        """The win rate that a passed test proves to be exceeded, and since which start it does.

        `wins` and `episodes` [K] are those since each start. The rate is the lower end of the
        interval that belongs to the test, which holds every rate that it would not reject: the
        highest threshold that would have passed as well. The interval has no upper end but 1.

        The chance to win may change meanwhile. With p_i the chance of episode i, the evidence
        against the highest of them is at most the mixture of the products of
        1 + (f / p_i) (x_i - p_i), because a win brings less the higher the rate is; so with
        1 - `alpha` that highest chance exceeds this end, at every episode.

        The start is the earliest whose bettors by themselves have won 1 / `alpha`; the share of
        episodes won since then exceeds the rate.
        """
        low, high = self.threshold, 1.0
        started = np.arange(1, len(wins) + 1)
        log_weight = -np.log(started * (started + 1.0))[:, None]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            held = np.logaddexp.reduce(self._at(middle, wins, episodes) + log_weight, axis=0)
            passes = _mixture(held, len(wins)) >= self.log_bound
            low, high = (middle, high) if passes else (low, middle)
        alone = np.logaddexp.reduce(self._at(low, wins, episodes), axis=1) - math.log(len(STAKES))
        return low, int((alone >= min(self.log_bound, alone.max())).argmax())

    def _at(self, threshold: float, wins: IntArray, episodes: IntArray) -> FloatArray:
        """Log of the wealth [K, stakes] against `threshold` of bettors who began at each start."""
        gain, loss = EvidenceTest(threshold, self.alpha)._log_factors
        return wins[:, None] * gain + (episodes - wins)[:, None] * loss

    def trace(self, values: npt.NDArray[np.bool_] | FloatArray) -> FloatArray:
        """Log of the e-process after each of `values` [N, ...], [N, ...].

        The same numbers to the bit as by `fold` one by one, far sooner.
        """
        growth = self._log_growth(values)
        log_evidence = np.empty(growth.shape[:-1])
        wealth = self.start(growth.shape[1:-1]).log_wealth
        for first in range(0, len(growth), RESTART_EVERY):
            block = growth[first : first + RESTART_EVERY]
            held = np.cumsum(np.concatenate([wealth[None], block]), axis=0)[1:]
            starts = first // RESTART_EVERY
            log_evidence[first : first + len(block)] = _mixture(held, starts + 1)
            if len(block) == RESTART_EVERY:
                wealth = np.logaddexp(held[-1], _log_weight(starts + 1))
                log_evidence[first + len(block) - 1] = _mixture(wealth, starts + 2)
        return log_evidence

    def _log_growth(self, values: Value) -> FloatArray:
        """Log of what each stake's wealth is multiplied by, [..., stakes]."""
        gain, loss = self._log_factors
        if isinstance(values, bool):  # one episode of a training, which must cost little
            return gain if values else loss
        if np.asarray(values).dtype == np.bool_:
            return np.where(np.expand_dims(values, -1), gain, loss)
        above = np.expand_dims(values, -1) - self.threshold
        return np.asarray(
            np.log(self.threshold + np.array(STAKES) * above) - np.log(self.threshold)
        )

    @cached_property
    def _log_factors(self) -> tuple[FloatArray, FloatArray]:
        stakes = np.array(STAKES)
        gain = np.log(self.threshold + stakes * (1 - self.threshold)) - np.log(self.threshold)
        return gain, np.log1p(-stakes)


def _log_weight(start: int) -> float:
    return float(-np.log((start + 1.0) * (start + 2.0)))


def _mixture(log_wealth: FloatArray, started: int) -> FloatArray:
    """Log of the e-process over `started` bettors of each stake and all that have not started."""
    mean = np.logaddexp.reduce(log_wealth, axis=-1) - math.log(len(STAKES))
    return np.asarray(np.logaddexp(mean, -math.log(started + 1.0)))
