"""The coordinator of a sweep, and what the sweep leaves beside its trials: chart, note, files."""

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import optuna
from optuna.trial import TrialState

from aimbot_lab.experiment.config.document import with_overrides
from aimbot_lab.experiment.runs.result import markdown_table
from aimbot_lab.experiment.runs.run_record import close_orphan_runs
from aimbot_lab.foundation.errors import AbortedError, StoreError
from aimbot_lab.foundation.files import replace_file
from aimbot_lab.foundation.shown_text import markdown_text, one_line, shown_return
from aimbot_lab.sweep.record import PARENT, SweepRecord
from aimbot_lab.sweep.report import (
    Confirmed,
    Pace,
    SweepReport,
    TrialReport,
    confirmation_cost,
    report,
    search_cost,
    verdict,
)
from aimbot_lab.sweep.settings import BEST_CONFIRMED, BEST_SEARCHED, BEST_SO_FAR
from aimbot_lab.sweep.space import overrides
from aimbot_lab.sweep.storage import Presence, sweep_folder
from aimbot_lab.sweep.worker import WorkerArguments, WorkerPool
from aimbot_lab.tracking.data_folder import DataFolder, choose_address
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run, rejoin_run
from aimbot_lab.tracking.tracker import Notify, RunStatus, Tracker

HEAD = ("trial", "in the search", "on fresh seeds", "95 %", "over the defaults", "95 % together")
MAX_TRIALS = 20  # the best of them; a tag holds no more than some thousand characters

CHARTED = "charted"  # attribute of a study: how many of its first trials the chart has

BEST_FILE = "best.yaml"


def note(report: SweepReport) -> str:
    """The best values, and the best few on fresh seeds."""
    best = report.best_trial
    parts = [f"{report.ended} of {report.total} trials ended; scored by {report.measure}."]
    if best is not None:
        values = ", ".join(
            markdown_text(f"{key}={_value(value)}") for key, value in best.params.items()
        )
        where = "; `best.yaml` has them." if report.status == "done" else ", so far."
        parts.append(f"**Best: trial {best.number}**, {values}{where}")
    found = verdict(report)
    if found is not None:
        parts.append(f"**{found[0].upper()}{found[1:]}.**")
    parts += [f"**NOT confirmed: {markdown_text(one.line)}**" for one in report.unconfirmed]
    if report.confirmed:
        parts += [
            "### The best again, on fresh seeds",
            markdown_table(HEAD, [_row(one) for one in report.confirmed]),
            "The best of many is also the luckiest: what counts is the value on fresh seeds.",
        ]
    if report.trials:
        parts += ["### Trials, the best first", _trials(report)]
    return "\n\n".join(parts)


def _trials(report: SweepReport) -> str:
    sign = -1 if report.maximizes else 1
    ended = [t for t in report.trials if t.state not in ("running", "waiting")]
    ended.sort(key=lambda t: (t.state != "done", sign * (t.value or 0.0), t.number))
    keys = list(report.trials[0].params)
    names = (markdown_text(key.rpartition(".")[2]) for key in keys)
    head = ("trial", *names, report.measure, "state")
    return markdown_table(head, [_trial_row(trial, keys) for trial in ended[:MAX_TRIALS]])


def _trial_row(trial: TrialReport, keys: list[str]) -> tuple[str, ...]:
    cells = [markdown_text(_value(trial.params[key])) for key in keys]
    more = "> " if trial.at_least else ""
    return str(trial.number), *cells, more + shown_return(trial.value), trial.state


def _row(one: Confirmed) -> tuple[str, ...]:
    return (
        one.label,
        ("> " if one.searched_at_least else "") + shown_return(one.searched),
        ("> " if one.censored else "") + shown_return(one.value),
        _interval(one.lower, one.upper),
        shown_return(one.gain),
        _interval(one.gain_lower, one.gain_upper),
    )


def _value(value: object) -> str:
    """A searched value as a person reads it; `best.yaml` has it exactly."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _interval(lower: float | None, upper: float | None) -> str:
    return "-" if lower is None else f"{shown_return(lower)} to {shown_return(upper)}"


class Chart:
    """Keeps the run's chart and note up to date."""

    def __init__(self, record: SweepRecord, parent: Tracker) -> None:
        self._record, self._parent = record, parent
        self._noted: str | None = None

    def draw(self, now: SweepReport) -> None:
        """A point for each trial that has ended, in the order of their numbers; a new note."""
        for number, best in self._new_points(now):
            self._parent.log_metrics(number, {BEST_SO_FAR: best})
        text = note(now)
        if text != self._noted:
            self._noted = text
            self._parent.set_note(text)

    def _new_points(self, now: SweepReport) -> list[tuple[int, float]]:
        record = self._record
        with record.storage.alone(record.name):  # several coordinators may share a run
            before = int(record.study.user_attrs.get(CHARTED, 0))
            # Up to the first that has not ended.
            ended = []
            for trial in now.trials:
                if trial.state in ("running", "waiting"):
                    break
                ended.append(trial)
            if len(ended) > before:
                record.study.set_user_attr(CHARTED, len(ended))
        points = best_so_far(ended, maximizes=now.maximizes)
        return [(number, best) for number, best in points if number >= before]


def best_so_far(trials: list[TrialReport], *, maximizes: bool) -> list[tuple[int, float]]:
    """The best value among the trials up to each, once there is one."""
    points, best = [], None
    for trial in trials:
        if trial.state == "done" and trial.value is not None:
            better = max if maximizes else min
            best = trial.value if best is None else better(best, trial.value)
        if best is not None:
            points.append((trial.number, best))
    return points


def best_text(record: SweepRecord, report: SweepReport) -> str | None:
    """The curriculum with the best trial's values, None where no trial has a value.

    It refers to the files of the sweep's own curriculum.
    """
    best = report.best_trial
    if best is None:
        return None
    given = overrides(best.params, record.config.search)
    loaded = with_overrides(record.base, given)
    confirmed = next((one for one in report.confirmed if one.number == best.number), None)
    lines = [
        f"# Best of sweep {record.name}: trial {best.number} of {report.total}. "
        f"{report.measure} {_shown_values(best.value, at_least=best.at_least)} in the search"
        + (
            f", {_shown_values(confirmed.value, at_least=confirmed.censored > 0)} on fresh seeds."
            if confirmed
            else "."
        ),
        *(f"# NOT confirmed on fresh seeds: {one_line(one.line)}" for one in report.unconfirmed),
        "# " + ", ".join(given),
    ]
    return "\n".join([*lines, loaded.resolved_text])


def write_best(record: SweepRecord, report: SweepReport, folder: Path) -> Path | None:
    """The file `best.yaml` in `folder`, whole or not at all; None where there is no best trial."""
    text = best_text(record, report)
    if text is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {**record.base.files, BEST_FILE: text}.items():
        replace_file(folder / name, content.encode())
        (folder / name).chmod(0o644)
    return folder / BEST_FILE


def _shown_values(value: float | None, *, at_least: bool) -> str:
    return "-" if value is None else ("> " if at_least else "") + f"{value:.6g}"


MIN_TRIALS = 2


def draw_plots(study: optuna.Study, folder: Path) -> Iterator[Path]:
    """PNG files in `folder`, of those pictures that the study's trials allow."""
    # They take a second to load.
    import matplotlib
    from matplotlib import pyplot
    from optuna.visualization import matplotlib as pictures

    matplotlib.use("Agg")
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    if len({trial.value for trial in complete}) < MIN_TRIALS:
        return
    drawings: Mapping[str, Callable[[optuna.Study], Any]] = {
        "history": pictures.plot_optimization_history,
        "importances": pictures.plot_param_importances,
        "slices": pictures.plot_slice,
        "parallel_coordinates": pictures.plot_parallel_coordinate,
    }
    for name, draw in drawings.items():
        path = folder / f"{name}.png"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these pictures are experimental in Optuna
            drawn = draw(study)
            axes = drawn.flat[0] if hasattr(drawn, "flat") else drawn
            axes.figure.set_size_inches(10, 6)
            axes.figure.savefig(path, dpi=100, bbox_inches="tight")
            pyplot.close(axes.figure)
        yield path


LISTEN_SECONDS = 0.2
REPORT_SECONDS = 1.0  # between two looks at all trials


def join_parent(
    record: SweepRecord, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> Tracker | None:
    """The sweep's run, new or resumed; None where another coordinator here writes to it.

    Raises StoreError where the store can't be used.
    """
    settings = replace(record.config.tracking, tensorboard=False)  # only its trainings have curves
    with record.storage.alone(record.name):
        known = record.parent_run
        if known is None:
            about = _description(record)
            tracker = open_run(data_folder, settings, about, tracking_uri=tracking_uri)
            record.study.set_user_attr(PARENT, tracker.run_id)
    if known is not None:
        try:
            tracker = rejoin_run(data_folder, settings, known, tracking_uri=tracking_uri)
        except StoreError:
            return None
    # A tag, because a sweep may be given more trials and a param stays.
    tracker.set_tags({**record.tags, "lab.sweep_trials": str(record.trials)})
    return tracker


def _description(record: SweepRecord) -> RunDescription:
    config = record.config
    return RunDescription(
        name=record.name,
        params={
            "sweep.seeds": config.seeds,
            "sweep.sampler": config.sampler,
            "sweep.pruner": config.pruner.kind,
            "sweep.parallel": config.parallel,
            "sweep.seed": config.seed,
            "sweep.measure": config.objective.measure,
        },
        tags={**record.tags, "lab.sweep": record.name},
    )


@dataclass(frozen=True)
class SweepSnapshot:
    """Where a sweep stands."""

    report: SweepReport
    at_work: Mapping[tuple[str, int], float]  # share done of the trials in hand here, by stage
    seconds_left: float | None  # of the stage that runs, at the present speed; None: not known yet


class SweepObserver(Protocol):
    """What follows a sweep, for example a view."""

    def progress(self, snapshot: SweepSnapshot) -> None:
        """It goes on."""

    def notice(self, text: str) -> None:
        """Something happened that a person should read."""


class Workers(Protocol):
    """Those that work through a sweep, wherever they are."""

    @property
    def at_work(self) -> Mapping[tuple[str, int], float]:
        """Shares of the trials in hand that are done, by stage and number."""

    @property
    def is_done(self) -> bool:
        """Whether all have gone."""

    def listen(self, seconds: float) -> None:
        """Take in what they say for at most `seconds`. Raises LabError where all must end."""

    def stop(self) -> None:
        """Have each leave its trial for later once its update is done."""

    def kill(self) -> None:
        """End them all at once."""


class StartWorkers(Protocol):
    """How workers are started: `WorkerPool` has them on this machine."""

    def __call__(self, arguments: WorkerArguments, size: int, /, *, notify: Notify) -> Workers:
        """Start that many workers; `notify` gets what a person should read."""


@dataclass(frozen=True)
class SweepRequest:
    """Where a sweep runs."""

    record: SweepRecord
    data_folder: DataFolder
    workers: int
    tracking_uri: str | None = None
    start_workers: StartWorkers = WorkerPool


@dataclass(frozen=True)
class SweepResult:
    """How a sweep ended here."""

    report: SweepReport
    is_done: bool  # else it was stopped and can go on
    best_file: Path | None
    parent_run: str | None
    tracking_uri: str  # where it and its trials are tracked, without a password


def run_sweep(
    request: SweepRequest, observer: SweepObserver, *, should_stop: Callable[[], bool]
) -> SweepResult:
    """Work at the sweep until every trial has ended or `should_stop` says so.

    Raises StoreError where a store can't be used, AbortedError for a KeyboardInterrupt; what was
    done until then is kept, and the next call goes on.
    """
    record = request.record
    close_orphan_runs(request.data_folder)
    if record.other_code is not None:
        observer.notice(record.other_code)
    for number in record.reap():
        observer.notice(f"trial {number} was left by a dead worker and is picked up again")
    parent = join_parent(record, request.data_folder, tracking_uri=request.tracking_uri)
    try:
        _work(request, observer, should_stop, parent=parent)
        return _conclude(request, parent)
    except KeyboardInterrupt as abort:
        _close(parent, "KILLED")
        close_orphan_runs(request.data_folder)
        raise AbortedError(
            f"aborted: resume sweep {record.name!r} with --resume; the trainings that ran are lost"
        ) from abort
    except BaseException:
        _close(parent, "FAILED")
        raise


def _work(
    request: SweepRequest,
    observer: SweepObserver,
    should_stop: Callable[[], bool],
    *,
    parent: Tracker | None,
) -> None:
    record = request.record
    arguments = WorkerArguments(
        record.storage.address.url, record.name, request.data_folder.root, request.tracking_uri
    )
    begun = report(record)
    if begun.status == "done":
        return
    if begun.ended < begun.total:
        observer.notice(search_cost(record, left=begun.total - begun.ended))
    presence = Presence(record.storage, record.study, lease=record.config.lease)
    presence.show()  # before there are workers, so that no other one takes the sweep for stopped
    pool = request.start_workers(arguments, request.workers, notify=observer.notice)
    look = _ProgressReporter(request, observer, parent)
    try:
        looked, stopping = 0.0, False
        while not pool.is_done:
            pool.listen(LISTEN_SECONDS)
            if should_stop() and not stopping:
                stopping = True
                pool.stop()
            if time.monotonic() - looked >= REPORT_SECONDS:
                looked = time.monotonic()
                presence.show()
                look(pool)
        look(pool)  # what ended since
    finally:
        pool.kill()
        record.reap()
        presence.leave()


class _ProgressReporter:
    """Tells the observer and the sweep's run where the sweep stands."""

    def __init__(
        self, request: SweepRequest, observer: SweepObserver, parent: Tracker | None
    ) -> None:
        self._request, self._observer = request, observer
        self._chart = None if parent is None else Chart(request.record, parent)
        self._pace: dict[str, Pace] = {}
        self._said = False

    def __call__(self, pool: Workers) -> None:
        """Look at all trials once more."""
        now = report(self._request.record)
        if now.status == "confirming" and not self._said:
            self._said = True
            cost = confirmation_cost(self._request.record, now, workers=self._request.workers)
            self._observer.notice(cost)
        pace = self._pace.setdefault(now.status, Pace())
        left = pace.seconds_left(now, pool.at_work)
        self._observer.progress(SweepSnapshot(now, pool.at_work, left))
        if self._chart is not None:
            self._chart.draw(now)


def _conclude(request: SweepRequest, parent: Tracker | None) -> SweepResult:
    record = request.record
    final = report(record)
    is_done = final.status == "done"
    folder = sweep_folder(request.data_folder, record.name)
    best = write_best(record, final, folder) if is_done else None
    if parent is not None:
        Chart(record, parent).draw(final)
        if is_done:
            _publish(record, final, best, parent)
        failed = bool(final.unconfirmed) or best is None
        _close(parent, ("FAILED" if failed else "FINISHED") if is_done else "KILLED")
    address = choose_address(
        request.data_folder, explicit=request.tracking_uri, setting=record.config.tracking.uri
    )
    return SweepResult(final, is_done, best, record.parent_run, address.shown)


def _publish(record: SweepRecord, final: SweepReport, best: Path | None, parent: Tracker) -> None:
    """Numbers, files and pictures of a sweep that is done, on its run."""
    trial = final.best_trial
    if trial is not None and trial.value is not None:
        parent.log_metrics(final.total, {BEST_SEARCHED: trial.value})
    again = next((one for one in final.confirmed if one.number == final.best), None)
    if again is not None and again.value is not None:
        parent.log_metrics(final.total, {BEST_CONFIRMED: again.value})
    if best is not None:
        for path in (best, *(best.with_name(name) for name in record.base.files)):
            parent.log_file(path)
    with tempfile.TemporaryDirectory("-plots") as folder, suppress(OSError):
        for path in draw_plots(record.study, Path(folder)):
            parent.log_file(path, "plots")


def _close(parent: Tracker | None, status: RunStatus) -> None:
    if parent is not None:
        parent.finish(status)
