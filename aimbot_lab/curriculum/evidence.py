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
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

STAKES = (0.1, 0.2, 0.4, 0.8)
MIDDLING = 2  # index of a stake between bold and timid
RESTART_EVERY = 256


class Evidence(NamedTuple):
    """What the episodes so far have shown; `...` is () or the shape of parallel lessons."""

    log_wealth: FloatArray  # [..., stakes] log of the weighted sum over all started bettors
    episodes: int


@dataclass(frozen=True)
class EvidenceTest:
    """The test of one threshold at one alpha."""

    threshold: float
    alpha: float

    @property
    def log_bound(self) -> float:
        """Log of the evidence that promotes."""
        return float(-np.log(self.alpha))

    def start(self, shape: tuple[int, ...] = ()) -> Evidence:
        """Evidence before the first episode, for one lesson or for `shape` parallel ones."""
        return Evidence(np.full((*shape, len(STAKES)), _log_weight(0)), 0)

    def fold(self, evidence: Evidence, won: bool | npt.NDArray[np.bool_]) -> Evidence:
        """Evidence after one more episode; `won` is one outcome or one per parallel lesson."""
        gain, loss = self._log_factors
        wealth = evidence.log_wealth + np.where(np.expand_dims(won, -1), gain, loss)
        episodes = evidence.episodes + 1
        if episodes % RESTART_EVERY == 0:
            wealth = np.logaddexp(wealth, _log_weight(episodes // RESTART_EVERY))
        return Evidence(wealth, episodes)

    def log_evidence(self, evidence: Evidence) -> FloatArray:
        """Log of the e-process, [...]."""
        started = evidence.episodes // RESTART_EVERY + 1
        mean = np.logaddexp.reduce(evidence.log_wealth, axis=-1) - np.log(len(STAKES))
        unstarted = -np.log(started + 1.0)
        return np.asarray(np.logaddexp(mean, unstarted))

    def episodes_that_carry_it(self, won: Sequence[bool]) -> int:
        """How many of the last outcomes of `won` [N] speak most for a rate above the threshold.

        That many from the end a bettor with a middling stake would best have started; where
        the rate climbed, what lies before says little about the rate at the end.
        """
        gain, loss = (factors[MIDDLING] for factors in self._log_factors)
        log_wealth = np.cumsum(np.where(np.array(won, np.bool_)[::-1], gain, loss))
        return int(np.argmax(log_wealth)) + 1

    @cached_property
    def _log_factors(self) -> tuple[FloatArray, FloatArray]:
        stakes = np.array(STAKES)
        gain = np.log(self.threshold + stakes * (1 - self.threshold)) - np.log(self.threshold)
        return gain, np.log1p(-stakes)


def _log_weight(start: int) -> float:
    return float(-np.log((start + 1.0) * (start + 2.0)))
