"""A run as a list shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf, isfinite
from typing import NamedTuple

from aimbot_lab.foundation import metric_names as names

WORLD_TAG = "lab.world"
"""The tag of the world that a run trains in; runs of older versions have none."""
TRAINING_SECONDS_TAG = "lab.training_seconds"
"""The tag of how long a run trained, without start, saving and breaks."""


class MetricPoint(NamedTuple):
    """One value of a metric."""

    step: int  # environment steps
    time_ms: int  # since 1970
    value: float  # may be NaN


class WinRate(NamedTuple):
    """A run's win rate, and the metric that it was tracked as."""

    value: float
    measure: str


@dataclass(frozen=True)
class RunSummary:
    """One run of a store, with the latest value of each of its metrics."""

    run_id: str
    name: str
    experiment: str
    experiment_id: str
    status: str  # RUNNING, FINISHED, FAILED or KILLED
    started: datetime  # UTC
    ended: datetime | None  # UTC, None while it runs
    metrics: Mapping[str, float]  # may hold NaN
    tags: Mapping[str, str]

    @property
    def seconds(self) -> float | None:
        """How long it took from start to end, None while it runs."""
        return None if self.ended is None else (self.ended - self.started).total_seconds()

    @property
    def training_seconds(self) -> float | None:
        """How much of that it trained, as its result says; None while it runs, or not told."""
        try:
            return float(self.tags[TRAINING_SECONDS_TAG])
        except (KeyError, ValueError):
            return None

    @property
    def win_rate(self) -> WinRate | None:
        """The latest win rate with the narrowest 95 % interval; None without any.

        Of fixed evaluation episodes or of the training's own; a lesson's, which may rest on a
        handful of episodes, does not count.
        """
        found = [
            (self._interval_width(measure), WinRate(self.metrics[measure], measure))
            for measure in (names.EVAL_WIN_RATE, names.LEARNING_WIN_RATE)
            if isfinite(self.metrics.get(measure, inf))
        ]
        return min(found, key=lambda pair: pair[0])[1] if found else None

    def _interval_width(self, measure: str) -> float:
        lower = self.metrics.get(names.lower_bound(measure), -inf)
        upper = self.metrics.get(names.upper_bound(measure), inf)
        width = upper - lower
        return width if isfinite(width) else inf
