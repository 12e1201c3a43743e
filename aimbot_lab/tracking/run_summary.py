"""A run as a list shows it, which of many runs are meant, and how its agents are named.

Among its artifacts and tags, the agents `best` and `last` are there once it has ended; `step-N` was
saved on request at environment step N.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from math import inf, isfinite
from typing import NamedTuple

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import ConfigurationError

WORLD_TAG = "lab.world"
"""The tag of the world that a run trains in; runs of older versions have none."""
TRAINING_SECONDS_TAG = "lab.training_seconds"
"""The tag of how long a run trained, without start, saving and breaks."""


class MetricPoint(NamedTuple):
    """One value of a metric."""

    step: int  # environment steps
    time_ms: int  # since 1970
    value: float  # may be NaN


class TrackedWinRate(NamedTuple):
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
    def win_rate(self) -> TrackedWinRate | None:
        """The latest win rate with the narrowest 95 % interval; None without any.

        Of fixed evaluation episodes or of the training's own; a lesson's, which may rest on a
        handful of episodes, does not count.
        """
        found = [
            (self._interval_width(measure), TrackedWinRate(self.metrics[measure], measure))
            for measure in (names.EVAL_WIN_RATE, names.LEARNING_WIN_RATE)
            if isfinite(self.metrics.get(measure, inf))
        ]
        return min(found, key=lambda pair: pair[0])[1] if found else None

    def _interval_width(self, measure: str) -> float:
        lower = self.metrics.get(names.lower_bound(measure), -inf)
        upper = self.metrics.get(names.upper_bound(measure), inf)
        width = upper - lower
        return width if isfinite(width) else inf


PARENT = "mlflow.parentRunId"
SWEEP = "lab.sweep"
SWEEP_STAGE = "lab.sweep_stage"  # of the trainings of a sweep
OWN_TRAINING = f"tags.`{PARENT}` IS NULL AND tags.`{SWEEP}` IS NULL"
"""`is_own_training` as a filter of MLflow's."""
ATTRIBUTES = ("name", "experiment", "status")


class RunFilter(NamedTuple):
    """What a run must have: `name`, `experiment` or `status`, else the tag `key`, as `value`.

    `value` may hold `*` for any letters; a run without such a tag has none.
    """

    key: str
    value: str

    def takes(self, run: RunSummary) -> bool:
        """Whether `run` is meant."""
        found = getattr(run, self.key) if self.key in ATTRIBUTES else run.tags.get(self.key)
        if found is None:
            return False
        if self.key == "status":
            return fnmatchcase(str(found), self.value.upper())
        return fnmatchcase(str(found), self.value)


def parse_filter(text: str) -> RunFilter:
    """The filter `KEY=VALUE`. Raises ConfigurationError if it is invalid."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value:
        raise ConfigurationError(
            f"--filter {text!r}: must be KEY=VALUE, KEY one of {', '.join(ATTRIBUTES)} or a tag, "
            "for example name=walker* or lab.seed=2"
        )
    return RunFilter(key.strip(), value)


def is_part_of_sweep(run: RunSummary) -> bool:
    """Whether a sweep made `run` for one of its trials."""
    return PARENT in run.tags


def is_own_training(run: RunSummary) -> bool:
    """Whether `run` is a training that is no part of a sweep, nor the sweep itself."""
    return not is_part_of_sweep(run) and SWEEP not in run.tags


def is_training(run: RunSummary) -> bool:
    """Whether `run` has trained: a sweep and its trials only have runs below them that did."""
    return SWEEP not in run.tags or SWEEP_STAGE in run.tags


def selected(
    runs: Sequence[RunSummary], filters: Sequence[str], *, with_trials: bool
) -> list[RunSummary]:
    """Those of `runs` that every filter takes; runs of a sweep's trials only where asked for.

    Raises ConfigurationError for an invalid filter.
    """
    parsed = [parse_filter(text) for text in filters]
    return [
        run
        for run in runs
        if all(one.takes(run) for one in parsed) and (with_trials or not is_part_of_sweep(run))
    ]


AGENT_FOLDER = "agent"  # of the artifacts; a folder of that agent's name is in it
BEST, LAST = "best", "last"
ALLOWED = "best, last, or step-N for an agent that was saved on request at step N"
MAX_DIGITS = 18
_SAVED = "step-"
_TAG = "lab.agent."


def saved_name(step: int) -> str:
    """The name of an agent that is saved on request at environment step `step`."""
    return f"{_SAVED}{step}"


def is_agent_name(name: object) -> bool:
    """Whether an agent can bear that name."""
    return name in (BEST, LAST) or _step(name) is not None


def saved_tag(name: str, *, lesson: int) -> dict[str, str]:
    """The tag by which a run lists an agent that was saved on request in `lesson` (from 1)."""
    return {_TAG + name: f"lesson {lesson}"}


def saved_agents(tags: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the agents that were saved on request, by rising step, by the run's `tags`."""
    steps = (_step(key.removeprefix(_TAG)) for key in tags if key.startswith(_TAG))
    return tuple(saved_name(step) for step in sorted(step for step in steps if step is not None))


def _step(name: object) -> int | None:
    if not isinstance(name, str) or not name.startswith(_SAVED):
        return None
    digits = name.removeprefix(_SAVED)
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
    return int(digits) if is_number and str(int(digits)) == digits else None
