"""Means over the episodes that ended since the last report, as metrics."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import EpisodeBatch


class EpisodeTally:
    """Sums of length, return and reward terms over episodes, taken and emptied together.

    These describe the training, in the order in which episodes end; win rates are the
    curriculum's, in the order in which they began.
    """

    def __init__(self, reward_terms: Sequence[str], decision_seconds: float) -> None:
        self._names = tuple(reward_terms)
        self._decision_seconds = decision_seconds
        self._clear()

    def _clear(self) -> None:
        self._episodes = 0
        self._decisions = 0
        self._terms = np.zeros(len(self._names))

    def add(self, batch: EpisodeBatch) -> None:
        """Count the episodes of `batch`."""
        if batch:
            self._episodes += len(batch.cell)
            self._decisions += int(batch.length.sum())
            self._terms += batch.terms.sum(axis=0)

    def take(self) -> dict[str, float]:
        """Metrics of the episodes counted since the last call; empty without any."""
        if not self._episodes:
            return {}
        terms = self._terms / self._episodes
        length = self._decisions / self._episodes
        metrics = {
            names.EPISODE_LENGTH: length,
            names.EPISODE_SECONDS: length * self._decision_seconds,
            names.EPISODE_RETURN: float(terms.sum()),
            names.EPISODES_ENDED: float(self._episodes),
        }
        pairs = zip(self._names, terms, strict=True)
        metrics.update({names.reward_term(name): float(value) for name, value in pairs})
        self._clear()
        return metrics

    def state(self) -> dict[str, Any]:
        """Everything counted since the last `take`."""
        return {
            "episodes": self._episodes,
            "decisions": self._decisions,
            "terms": self._terms.copy(),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self._episodes, self._decisions = state["episodes"], state["decisions"]
        self._terms = state["terms"]
