"""The seam that everything is logged through: its protocol, what is read back, and one in memory.

What a store refuses is checked where it is logged: nothing refusable is ever acknowledged.

Among a run's artifacts and tags, the agents `best` and `last` are there once it has ended; `step-N`
was saved on request at environment step N.
"""

import math
import posixpath
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from math import inf, isfinite
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import is_seen

WIN_RATES = (names.EVAL_WIN_RATE, names.LEARNING_WIN_RATE)
CURRICULUM_TAG = "lab.curriculum"
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
            for measure in WIN_RATES
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
NO_TRIAL = f"tags.`{PARENT}` IS NULL"
OWN_TRAINING = f"{NO_TRIAL} AND tags.`{SWEEP}` IS NULL"
"""`is_no_trial` and `is_own_training` as filters of MLflow's."""
ATTRIBUTES = ("name", "experiment", "status")
_COLUMNS = {"name": "attributes.run_name", "status": "attributes.status"}
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 .:/=+@-]+")


def parse_filter(text: str) -> tuple[str, str]:
    """Key and value of the filter `KEY=VALUE`. Raises ConfigurationError if it is invalid."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value:
        raise ConfigurationError(
            f"--filter {text!r}: must be KEY=VALUE, KEY one of {', '.join(ATTRIBUTES)} or a tag, "
            "for example name=walker* or lab.seed=2"
        )
    return key.strip(), value


def is_no_trial(run: RunSummary) -> bool:
    """Whether no sweep made `run` for one of its trials."""
    return PARENT not in run.tags


def is_own_training(run: RunSummary) -> bool:
    """Whether `run` is a training outside a sweep; a sweep itself is not."""
    return is_no_trial(run) and SWEEP not in run.tags


def is_training(run: RunSummary) -> bool:
    """Whether `run` has trained: a sweep and its trials only have runs below them that did."""
    return SWEEP not in run.tags or SWEEP_STAGE in run.tags


class RunFilter(NamedTuple):
    """Which runs are meant."""

    condition: str  # MLflow's filter, for what `takes` is true of and possibly more
    takes: Callable[[RunSummary], bool]
    experiments: Callable[[str], bool] = lambda _: True  # by name: those that may have such runs


def run_filter(texts: Sequence[str], *, with_trials: bool) -> RunFilter:
    """Runs that have each `KEY=VALUE` of `texts`; those of a sweep's trials only where asked for.

    KEY is name, experiment, status or a tag; * in VALUE stands for any letters. Raises
    ConfigurationError for an invalid text.
    """
    parsed = [parse_filter(text) for text in texts]
    wanted = [(key, value.upper() if key == "status" else value) for key, value in parsed]

    def takes(run: RunSummary) -> bool:
        own = {**run.tags, **{key: getattr(run, key) for key in ATTRIBUTES}}
        fits = all(own.get(key) is not None and fnmatchcase(own[key], v) for key, v in wanted)
        return fits and (with_trials or is_no_trial(run))

    def experiments(name: str) -> bool:
        return all(fnmatchcase(name, value) for key, value in wanted if key == "experiment")

    conditions = [_condition(key, value) for key, value in wanted if key != "experiment"]
    parts = filter(None, ("" if with_trials else NO_TRIAL, *conditions))
    return RunFilter(" AND ".join(parts), takes, experiments)


def _condition(key: str, value: str) -> str:
    """A filter of MLflow's for runs that have `value`, and for others where LIKE can't tell."""
    if key not in ATTRIBUTES and not is_key(key):
        return ""
    column = _COLUMNS.get(key, f"tags.`{key}`")
    plain, bracket, _ = value.partition("[")
    return f"{column} LIKE '{_NOT_PLAIN.sub('%', plain)}{'%' if bracket else ''}'"


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


RunStatus = Literal["FINISHED", "FAILED", "KILLED"]
NOTE_TAG = "mlflow.note.content"
KEPT_TAGS = ("lab.", "mlflow.")  # what the tags of the package and of MLflow begin with
PANEL_TAG = "panel.start"  # of a run that a page of the panel started: the key of its start


@dataclass(frozen=True)
class FinishReport:
    """How much of a run has reached its store when it ended."""

    status: RunStatus
    waiting: int = 0  # entries that stay in the journal until `close_orphan_runs` delivers them
    refused: int = 0  # entries that the store will never take, for example of a deleted run
    dropped: int = 0  # entries that the local disk could not keep
    failure: str | None = None  # why entries wait, were refused or were dropped

    @property
    def complete(self) -> bool:
        """Whether everything has arrived."""
        return not (self.waiting or self.refused or self.dropped)


class Tracker(Protocol):
    """One run's numbers, tags, texts and files.

    What a `log_` or `set_` call was given is durable when it returns, and arrives in the store
    in the order of the calls. None of them waits for the store or raises for its outages or
    those of the local disk; what that could not keep is counted in the report. All raise
    ValueError for a name that no store takes, RuntimeError after `finish`, and RunLostError where
    another process has taken the run over; then nothing more is kept or sent.
    """

    @property
    def run_id(self) -> str:
        """The store's id of the run."""

    @property
    def experiment_id(self) -> str:
        """The store's id of the run's experiment."""

    @property
    def tracking_uri(self) -> str:
        """The store's address, without a password."""

    def log_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep numbers measured at environment step `step`.

        Values that are not finite are kept as NaN. The UI draws 2,500 points of a key: callers
        log on a grid that stays below that.
        """

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags; values are cut at 8,000 characters."""

    def set_note(self, markdown: str) -> None:
        """Set the text shown on top of the run, cut at 8,000 characters."""

    def log_text(self, text: str, name: str) -> bool:
        """Keep `text` as the artifact `name`, a relative path; whether the disk took it."""

    def log_file(self, path: Path, folder: str = "") -> bool:
        """Keep a copy of the file at `path` as the artifact `folder`/its name.

        Whether the disk took it. Raises OSError where the file can't be read.
        """

    def grow(self, name: str, text: str, *, place: int) -> bool:
        """Write `text` into the file `name`, which becomes an artifact when the run ends.

        At byte `place`, with nothing left behind it; at the end where the file is shorter. Whether
        the disk took it: it is not waited for, but the death of this process leaves it whole.
        """

    def sync(self) -> None:
        """Wait until what `grow` was given is on the disk, as far as that works."""

    def check_owner(self, *, anew: bool = True) -> None:
        """Raise RunLostError where another process has taken the run over.

        With `anew` the owner file is read, else the last known state counts, which costs nothing.
        """

    def finish(
        self, status: RunStatus, *, wait_seconds: float = 20.0, resumable: bool = False
    ) -> FinishReport:
        """End the run and wait at most `wait_seconds` until all has arrived.

        A FINISHED run keeps its checkpoints, as others do, where it is `resumable`. A second call
        does not change the status; it reports again.
        """


METRICS_PER_CALL = 1000
TAGS_PER_CALL = 100
PARAMS_PER_CALL = 100
MAX_PARAM = 6000  # characters
MAX_TAG = 8000  # characters
_LONGEST_KEY = 250  # characters
_LONGEST_RUN_NAME = 250  # characters
_KEY = re.compile(r"[\w\-. :/]+")


def is_key(key: str) -> bool:
    """Whether MLflow takes `key` as a name of a metric, parameter or tag."""
    plain = _KEY.fullmatch(key) is not None and _is_plain_path(key)
    return plain and len(key) <= _LONGEST_KEY


def checked_key(key: str) -> str:
    """`key`, a name of a metric, parameter or tag. Raises ValueError where MLflow refuses it."""
    if not is_key(key):
        raise ValueError(
            f"{key!r} is not a valid name for tracking: letters, digits and _-. :/ are allowed, "
            f"{_LONGEST_KEY} characters at most, no empty part between slashes"
        )
    return key


def checked_own_key(key: str) -> str:
    """`key`, a tag of a user's. Raises ValueError where MLflow or this package keeps it."""
    if key.startswith(KEPT_TAGS):
        raise ValueError("lab. and mlflow. are reserved")
    return checked_key(key)


def own_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Those of `tags` that users gave a run."""
    kept = (*KEPT_TAGS, PANEL_TAG)
    return {key: value for key, value in tags.items() if not key.startswith(kept)}


def checked_run_name(name: str) -> str:
    """`name`, what a run is to be called. Raises ConfigurationError where a list can't show it."""
    if not name.strip() or len(name) > _LONGEST_RUN_NAME or not is_seen(name):
        shown = shortened(name, 40)
        raise ConfigurationError(
            f"the name of a run must be one visible line of 1 to {_LONGEST_RUN_NAME} characters, "
            f"not all of them blank (got {shown!a})"
        )
    return name


def checked_name(name: str) -> str:
    """`name`, an artifact's relative path. Raises ValueError where it leaves the run's folder."""
    if not _is_plain_path(name) or "\\" in name:
        raise ValueError(f"{name!r} is not an artifact name: a relative path like notes/summary.md")
    return name


def checked_file_name(name: str) -> str:
    """`name`, an artifact at the top. Raises ValueError where it is in a folder, or as above."""
    if "/" in name:
        raise ValueError(f"{name!r} is not a file name: no folder is allowed")
    return checked_name(name)


def name_in_folder(folder: str, file_name: str) -> str:
    """The artifact name of a file in `folder`, empty for the top. Raises ValueError as above."""
    return checked_name(f"{folder}/{file_name}" if folder else file_name)


def checked_metrics(metrics: Mapping[str, float]) -> dict[str, float]:
    """`metrics` as plain floats; a value that is not finite becomes NaN.

    MLflow would store infinity as 1.8e308, which makes a chart's scale useless; NaN shows as a
    gap. Raises ValueError for a key that MLflow refuses.
    """
    values = {checked_key(key): float(value) for key, value in metrics.items()}
    return {key: value if math.isfinite(value) else math.nan for key, value in values.items()}


def checked_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """`tags` with long values cut. Raises ValueError for a key that MLflow refuses."""
    return {checked_key(key): shortened(value, MAX_TAG) for key, value in tags.items()}


def shortened(text: str, longest: int) -> str:
    """`text`, cut to `longest` characters and ended by an ellipsis where it is longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _is_plain_path(path: str) -> bool:
    return posixpath.normpath(path) == path and path != "." and not path.startswith(("/", ".."))


class MemoryTracker:
    """A `Tracker` whose `metrics`, `tags`, `artifacts` and `status` can be read at any time."""

    run_id = "memory"
    experiment_id = "memory"
    tracking_uri = "memory:"

    def __init__(self) -> None:
        self.metrics: dict[str, list[tuple[int, float]]] = {}  # key -> (step, value), as logged
        self.tags: dict[str, str] = {}
        self.artifacts: dict[str, bytes] = {}  # name -> content
        self.status: RunStatus | None = None

    def log_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep numbers measured at environment step `step`."""
        self._check_open()
        for key, value in checked_metrics(metrics).items():
            self.metrics.setdefault(key, []).append((int(step), value))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags."""
        self._check_open()
        self.tags.update(checked_tags(tags))

    def set_note(self, markdown: str) -> None:
        """Set the text shown on top of the run."""
        self.set_tags({NOTE_TAG: markdown})

    def log_text(self, text: str, name: str) -> bool:
        """Keep `text` as the artifact `name`; it always can."""
        self._check_open()
        self.artifacts[checked_name(name)] = text.encode()
        return True

    def log_file(self, path: Path, folder: str = "") -> bool:
        """Keep a copy of the file at `path` as an artifact; it always can."""
        self._check_open()
        name = name_in_folder(folder, path.name)
        self.artifacts[name] = path.read_bytes()
        return True

    def grow(self, name: str, text: str, *, place: int) -> bool:
        """Write `text` into the artifact `name`; it always can."""
        self._check_open()
        before = self.artifacts.get(checked_file_name(name), b"")
        self.artifacts[name] = before[:place] + text.encode()
        return True

    def sync(self) -> None:
        """There is nothing to wait for."""

    def check_owner(self, *, anew: bool = True) -> None:
        """It always belongs to this process."""

    def finish(
        self,
        status: RunStatus,
        *,
        wait_seconds: float = 20.0,  # noqa: ARG002
        resumable: bool = False,  # noqa: ARG002
    ) -> FinishReport:
        """End the run; there is nothing to wait for."""
        self.status = self.status or status
        return FinishReport(self.status)

    def _check_open(self) -> None:
        if self.status is not None:
            raise RuntimeError("the run has ended: nothing more can be logged to it")


Notify = Callable[[str], None]


def silent(_text: str) -> None:
    """Ignore a report."""


def never_raising(notify: Notify) -> Notify:
    """`notify` without its errors: a listener that fails stops nothing."""

    def guarded(text: str) -> None:
        with suppress(Exception):
            notify(text)

    return guarded


class Outage:
    """One thing that may fail for a while, however often and by how many threads it is tried."""

    def __init__(self, notify: Notify) -> None:
        self.reason: str | None = None  # why it fails now, None while it works
        self._notify = notify
        self._lock = threading.Lock()

    def begin(self, reason: str, *, consequence: str) -> None:
        """Note that it failed because of `reason`; reported unless it failed before."""
        with self._lock:
            is_news = self.reason is None
            self.reason = reason
            if is_news:
                self._notify(f"{reason}; {consequence}")

    def end(self, relief: str) -> None:
        """Note that it works; `relief` is reported if it failed before."""
        with self._lock:
            if self.reason is not None:
                self._notify(relief)
                self.reason = None
