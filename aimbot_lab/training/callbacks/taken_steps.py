"""What the steps of a rollout have brought, kept until decisions are made where the next begins."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.world import Int64Array

NOBODY = np.zeros(0, np.int64)


class TakenStep(NamedTuple):
    """A step in which episodes ended.

    Of those that run on, only the one is known that began first among those that count.
    """

    step: int  # environment steps, it included
    episodes: EpisodeBatch
    rating: float | None = None  # the learner's running one after it, under self-play


class TrainingOver(Exception):  # noqa: N818 not an error: nothing is left to learn, or wanted
    """A training ends where a rollout would begin, which stable-baselines3 can't do by itself."""


class TakenSteps:
    """The steps since the last `take`, in order.

    `first` gives the scenario from which on episodes count, which stays during a rollout; `rating`
    the learner's running one.
    """

    def __init__(
        self, first: Callable[[], int | None], rating: Callable[[], float] | None = None
    ) -> None:
        self._first, self._rating = first, rating
        self._steps: list[TakenStep] = []

    def add(self, step: int, episodes: EpisodeBatch | None) -> None:
        """Keep what ended at environment step `step`."""
        if episodes:
            first = self._first()
            rank = oldest(episodes.running_order, episodes.running_scenario, first)
            rating = None if self._rating is None else self._rating()
            self._steps.append(TakenStep(step, with_running(episodes, rank, first), rating))

    def take(self) -> Sequence[TakenStep]:
        """The steps, which are forgotten."""
        taken, self._steps = self._steps, []
        return taken


def oldest(order: Int64Array, scenario: Int64Array, first: int | None) -> int | None:
    """Rank of the episode that began first, of those that run in a scenario from `first` on."""
    if first is None:
        return None
    counts = order[scenario >= first]
    return int(counts.min()) if counts.size else None


def with_running(episodes: EpisodeBatch, rank: int | None, first: int | None) -> EpisodeBatch:
    """`episodes`, beside which only that of `rank`, of scenario `first`, goes on."""
    if rank is None or first is None:
        return episodes._replace(running_order=NOBODY, running_scenario=NOBODY)
    return episodes._replace(running_order=np.array([rank]), running_scenario=np.array([first]))
