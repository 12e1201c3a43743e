"""The tracker that trainings use: everything goes to a journal, and from there to the store."""

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aimbot_lab.foundation.errors import RunLostError
from aimbot_lab.tracking.event_file import EVENTS_NAME, EventFile
from aimbot_lab.tracking.journal.delivery import EntrySink
from aimbot_lab.tracking.journal.disk_reserve import Reserve
from aimbot_lab.tracking.journal.entries import (
    EndEntry,
    Entry,
    MetricsEntry,
    ResumeEntry,
    TagsEntry,
)
from aimbot_lab.tracking.journal.growing_files import GrowingFiles, growing_entries, growing_file
from aimbot_lab.tracking.journal.journal import Journal
from aimbot_lab.tracking.journal.outage import Notify, silent
from aimbot_lab.tracking.journal.safe_journal import SafeJournal
from aimbot_lab.tracking.journal.sender import FIRST_PAUSE, Sender
from aimbot_lab.tracking.limits import (
    checked_file_name,
    checked_metrics,
    checked_name,
    checked_tags,
    name_in_folder,
)
from aimbot_lab.tracking.runs.run_folder import RunFolder
from aimbot_lab.tracking.tracker import NOTE_TAG, FinishReport, RunStatus


class RunAddress(NamedTuple):
    """Where a run is found."""

    run_id: str
    experiment_id: str
    tracking_uri: str  # without a password


class JournalTracker:
    """A `Tracker` over a journal and the thread that empties it.

    A run that goes on from a checkpoint comes by steps again that it had `logged` before: each
    number is kept once.
    """

    def __init__(
        self,
        address: RunAddress,
        folder: RunFolder,
        *,
        safe_journal: SafeJournal,
        sender: Sender,
        logged: Mapping[int, Collection[str]],
        events: EventFile | None,
    ) -> None:
        self._address = address
        self._folder = folder
        self._journal = safe_journal.journal
        self._safe_journal = safe_journal
        self._sender = sender
        self._logged = logged
        self._events = events
        self._last: list[Entry] = []
        self._report: FinishReport | None = None
        self._finish_too: Callable[[], None] = lambda: None

    @property
    def run_id(self) -> str:
        """The store's id of the run."""
        return self._address.run_id

    @property
    def experiment_id(self) -> str:
        """The store's id of the run's experiment."""
        return self._address.experiment_id

    @property
    def tracking_uri(self) -> str:
        """The store's address, without a password."""
        return self._address.tracking_uri

    def log_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep numbers measured at environment step `step`."""
        known = self._logged.get(int(step), ())
        new = {key: value for key, value in metrics.items() if key not in known}
        entry = MetricsEntry(int(step), now_ms(), checked_metrics(new))
        self._journal.check_open()
        if known and not new:
            return
        self._safe_journal.keep_metrics(entry)
        if self._events is not None:
            self._events.add(entry)
        self._sender.notify()

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags."""
        entry = TagsEntry(checked_tags(tags))
        self._journal.check_open()
        self._safe_journal.keep_tags(entry)
        self._sender.notify()

    def set_note(self, markdown: str) -> None:
        """Set the text shown on top of the run."""
        self.set_tags({NOTE_TAG: markdown})

    def log_text(self, text: str, name: str) -> bool:
        """Keep `text` as the artifact `name`; whether the disk took it."""
        place = PurePosixPath(checked_name(name))
        self._journal.check_open()
        kept = self._safe_journal.keep_text(text, place.name, folder=_folder_name(place.parent))
        self._sender.notify()
        return kept

    def log_file(self, path: Path, folder: str = "") -> bool:
        """Keep a copy of the file at `path` as an artifact; whether the disk took it."""
        place = PurePosixPath(name_in_folder(folder, path.name))
        self._journal.check_open()
        kept = self._safe_journal.keep_file(path, folder=_folder_name(place.parent))
        self._sender.notify()
        return kept

    def grow(self, name: str, text: str, *, place: int) -> bool:
        """Write `text` into a file that grows; whether the disk took it."""
        self._journal.check_open()
        self.check_owner(anew=False)
        return self._safe_journal.keep_growth(checked_file_name(name), text.encode(), place=place)

    def sync(self) -> None:
        """Wait until what has grown is on the disk, as far as that works."""
        self._safe_journal.sync_growth()

    def check_owner(self, *, anew: bool = True) -> None:
        """Raise RunLostError where another process has taken the run over."""
        self._folder.check_owner(anew=anew)

    def finish(self, status: RunStatus, *, wait_seconds: float = 20.0) -> FinishReport:
        """End the run, wait until all has arrived, and give the run folder back.

        A run that was taken over is left to whoever has it.
        """
        if self._report is None:
            try:
                delivered = self._end(status, wait_seconds)
            except RunLostError:
                self._sender.stop()
                delivered = False
            self._report = self._current_report(status)
            self._journal.close()
            if delivered:
                self._folder.settle(self._report.status)
            else:
                self._folder.release()
            self._finish_too()
        return self._report

    def finishing(self, too: Callable[[], None]) -> "JournalTracker":
        """This tracker, which calls `too` once it has finished."""
        self._finish_too = too
        return self

    def _end(self, status: RunStatus, wait_seconds: float) -> bool:
        """Whether the store has all of the run, its end included."""
        if self._journal.ending is None:
            self.check_owner()
            self._safe_journal.keep_grown(growing_entries(self._folder.path))
            self._last = self._safe_journal.close(EndEntry(status, now_ms()))
            if status == "FINISHED":  # before any wait, in which this process may be killed
                self._folder.forget_checkpoints()
        return self._sender.finish(wait_seconds, last=self._last)

    def _current_report(self, status: RunStatus) -> FinishReport:
        ending = self._journal.ending
        reasons = (self._safe_journal.reason, self._sender.failure)
        return FinishReport(
            status=ending.status if ending else status,
            waiting=self._journal.waiting,
            refused=self._sender.refused,
            dropped=self._safe_journal.dropped + self._sender.unsent,
            failure="; ".join(reason for reason in reasons if reason) or None,
        )


def start_tracker(
    address: RunAddress,
    folder: RunFolder,
    *,
    sink: EntrySink,
    notify: Notify = silent,
    first_pause: float = FIRST_PAUSE,
    resumed: bool = False,
    events: bool = False,
) -> JournalTracker:
    """A tracker for a run that the store knows, with `sink` there and `folder` here.

    It keeps a TensorBoard file where `events` says so or the folder has one, which is written anew.
    Raises StoreError where the disk has no room for a journal.
    """
    reserve = Reserve(folder.path)
    reserve.take()
    journal = Journal(folder.path)
    if resumed:
        journal.append(ResumeEntry(now_ms()))
    safe_journal = SafeJournal(
        journal,
        reserve,
        growing=GrowingFiles(folder.path),
        notify=notify,
        check_owner=folder.check_owner,
    )
    sender = Sender(
        journal, sink, notify=notify, first_pause=first_pause, check_owner=folder.check_owner
    )
    logged = journal.metrics() if resumed else {}
    event_file = None
    if events or growing_file(folder.path, EVENTS_NAME).exists():
        write = partial(_grow_events, safe_journal)
        event_file = EventFile(write, journal.metric_entries(), time_ms=now_ms())
    return JournalTracker(
        address, folder, safe_journal=safe_journal, sender=sender, logged=logged, events=event_file
    )


def _grow_events(safe_journal: SafeJournal, data: bytes, place: int) -> bool:
    return safe_journal.keep_growth(EVENTS_NAME, data, place=place)


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _folder_name(folder: PurePosixPath) -> str:
    return "" if folder == PurePosixPath(".") else str(folder)
