"""A run as a list shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class MetricPoint(NamedTuple):
    """One value of a metric."""

    step: int  # environment steps
    time_ms: int  # since 1970
    value: float  # may be NaN


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
        """How long it took, None while it runs."""
        return None if self.ended is None else (self.ended - self.started).total_seconds()
