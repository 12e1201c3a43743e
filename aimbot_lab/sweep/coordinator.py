"""Running a sweep on this machine: its run in the tracking store, its workers, its end."""

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from aimbot_lab.experiment.runs.run_record import close_orphan_runs
from aimbot_lab.foundation.errors import AbortedError, StoreError
from aimbot_lab.sweep.outputs import Chart, write_best
from aimbot_lab.sweep.record import PARENT, SweepRecord
from aimbot_lab.sweep.report import Pace, SweepReport, confirmation_cost, report, search_cost
from aimbot_lab.sweep.settings import BEST_CONFIRMED, BEST_SEARCHED
from aimbot_lab.sweep.storage import Presence, sweep_folder
from aimbot_lab.sweep.worker import WorkerArguments, WorkerPool
from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.opening import RunDescription, open_run, rejoin_run
from aimbot_lab.tracking.tracker import Notify, RunStatus, Tracker

LISTEN_SECONDS = 0.2
REPORT_SECONDS = 1.0  # between two looks at all trials


def join_parent(
    record: SweepRecord, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> Tracker | None:
    """The sweep's run, new or resumed; None where another coordinator here writes to it.

    Raises StoreError where the store can't be used.
    """
    tracker = _joined(record, data_folder, tracking_uri=tracking_uri)
    if tracker is not None:  # a tag, because a sweep may be given more trials and a param stays
        tracker.set_tags({**record.tags, "lab.sweep_trials": str(record.trials)})
    return tracker


def _joined(
    record: SweepRecord, data_folder: DataFolder, *, tracking_uri: str | None
) -> Tracker | None:
    settings = replace(record.config.tracking, tensorboard=False)  # only its trainings have curves
    with record.storage.alone(record.name):
        known = record.parent_run
        if known is None:
            tracker = open_run(
                data_folder, settings, _description(record), tracking_uri=tracking_uri
            )
            record.study.set_user_attr(PARENT, tracker.run_id)
            return tracker
    try:
        return rejoin_run(data_folder, settings, known, tracking_uri=tracking_uri)
    except StoreError:
        return None


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
    from aimbot_lab.sweep.outputs import draw_plots  # takes a second to load

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
