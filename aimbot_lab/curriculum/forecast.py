"""How many episodes a lesson's test takes, were the win rate such and such.

The very test that ends a lesson is run on simulated episodes, each won with the assumed chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from aimbot_lab.curriculum.evidence import EvidenceTest
from aimbot_lab.curriculum.rules import CompletionCriteria

FloatArray = npt.NDArray[np.float64]

LESSONS = 500  # simulated side by side
LONGEST = 10_000  # episodes of a simulated lesson
TOO_LONG = 1e12  # episodes of a whole lesson that no training plays
MAX_EPISODES = 40_000  # of all lessons that a forecaster simulates: about a second
CERTAIN = 0.97  # share of simulated lessons that have passed when the rest is not waited for
EVERY_LOOK = 64  # episodes up to which each is looked at; then each 64th part of the way
STEPS_UP = (0.05, 0.10, 0.20)  # from the threshold


@dataclass(frozen=True)
class Expectation:
    """What a lesson takes at an assumed true win rate, the same in every cell."""

    win_rate: float
    episodes: int | None  # median; None: more than are simulated, or than could be played


def assumed_win_rates(threshold: float) -> tuple[float, ...]:
    """Win rates above `threshold` that are worth a forecast; the last is 1, the agent that wins
    always."""
    above = [rate for step in STEPS_UP if (rate := round(threshold + step, 9)) < 1]
    return (*(above or [halfway(threshold)]), 1.0)


def halfway(threshold: float) -> float:
    """The win rate between `threshold` and 1."""
    return round((1 + threshold) / 2, 9)


def can_be_forecast(criteria: CompletionCriteria | None) -> TypeGuard[CompletionCriteria]:
    """Whether a win rate decides, and by the test that is simulated here."""
    if criteria is None:
        return False
    return criteria.by_evidence and criteria.measured.of_wins


class Forecaster:
    """Forecasts the lessons of one curriculum; each test is simulated once.

    It simulates `most_episodes` in all; what would need more is None.
    """

    def __init__(self, most_episodes: int = MAX_EPISODES) -> None:
        self._times: dict[tuple[float, float, float], FloatArray] = {}
        self._left = most_episodes

    def expect(
        self, criteria: CompletionCriteria, shares: Sequence[float], *, win_rate: float
    ) -> Expectation:
        """What a lesson takes whose cells get these `shares` of its episodes."""
        key = criteria.threshold, criteria.alpha, win_rate
        if key not in self._times:
            # Episodes until `test` passed [LESSONS], inf where it never did.
            test = EvidenceTest(*key[:2])
            source = np.random.default_rng(1)
            times = np.full(LESSONS, inf)
            evidence = test.start((LESSONS,))
            for episode, look in _looks(min(LONGEST, self._left)):
                evidence = test.fold(evidence, source.random(LESSONS) < win_rate)
                self._left -= 1
                if look:
                    passed = test.log_evidence(evidence) >= test.log_bound
                    times[passed & (times == inf)] = episode
                    if np.mean(times < inf) >= CERTAIN:
                        break
            self._times[key] = times
        whole = _whole_lessons(self._times[key], shares if criteria.every_cell else (1.0,))
        median = float(np.quantile(whole, 0.5, method="higher"))
        episodes = None if median > TOO_LONG else max(ceil(median), criteria.min_lesson_length)
        return Expectation(win_rate, episodes)


def _looks(count: int) -> Iterator[tuple[int, bool]]:
    """The numbers of `count` episodes, and which of them are looked at."""
    following = 1
    for episode in range(1, count + 1):
        yield episode, episode == following
        if episode == following:
            following += max(1, episode // EVERY_LOOK)


def _whole_lessons(times: FloatArray, shares: Sequence[float]) -> FloatArray:
    """Episodes of lessons [LESSONS] whose cells each take `times` of their own share."""
    source = np.random.default_rng(2)
    with np.errstate(divide="ignore", over="ignore"):  # a share of next to nothing takes for ever
        cells = [source.permutation(times) / share for share in shares]
    return np.asarray(np.max(cells, axis=0))
