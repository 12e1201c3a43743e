"""The tracker that trainings use: everything goes to a journal, and from there to the store."""

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aimbot_lab.foundation.errors import RunLostError, StoreError
from aimbot_lab.tracking.event_file import EVENTS_NAME, EventFile
from aimbot_lab.tracking.journal import (
    EndEntry,
    Entry,
    FileEntry,
    GrowingFiles,
    Journal,
    MetricsEntry,
    Reserve,
    ResumeEntry,
    TagsEntry,
    growing_entries,
    growing_file,
)
from aimbot_lab.tracking.runs.run_folder import RunFolder
from aimbot_lab.tracking.sender import FIRST_PAUSE, EntrySink, Sender
from aimbot_lab.tracking.tracker import (
    NOTE_TAG,
    FinishReport,
    Notify,
    Outage,
    RunStatus,
    checked_file_name,
    checked_metrics,
    checked_name,
    checked_tags,
    name_in_folder,
    silent,
)

_CONSEQUENCE = "the training goes on, untracked until that works"


class RunAddress(NamedTuple):
    """Where a run is found."""

    run_id: str
    experiment_id: str
    tracking_uri: str  # without a password


class JournalTracker:
    """A `Tracker` over a journal and the thread that empties it; `start_tracker` makes one.

    It goes on without entries that the disk refuses, and counts them. It writes to the journal only
    while this process owns the run; growing files it leaves to their descriptors, which a take-over
    parts from the files. Tags that were refused are tried again with the next ones and at the end
    of the run, which has room of its own: they are few, and they say how the run ended.

    A run that goes on from a checkpoint comes by steps again that it had `logged` before: each
    number is kept once.
    """

    def __init__(
        self,
        address: RunAddress,
        folder: RunFolder,
        *,
        journal: Journal,
        sender: Sender,
        reserve: Reserve,
        notify: Notify,
        logged: Mapping[int, Collection[str]],
    ) -> None:
        self._address, self._folder = address, folder
        self._journal, self._sender, self._reserve = journal, sender, reserve
        self._logged = logged
        self._growing = GrowingFiles(folder.path)
        self._disk = Outage(notify)
        self._dropped = 0  # metrics and files that could not be kept
        self._reason: str | None = None  # why the disk refused the last entry that it refused
        self._tags: dict[str, str] = {}  # set, and not on the disk
        self._events: EventFile | None = None
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
        self._dropped += not self._is_kept(entry)
        if self._events is not None:
            self._events.add(entry)
        self._sender.notify()

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags."""
        merged = {**self._tags, **checked_tags(tags)}
        self._journal.check_open()
        self._tags = {} if self._is_kept(TagsEntry(merged)) else merged
        self._sender.notify()

    def set_note(self, markdown: str) -> None:
        """Set the text shown on top of the run."""
        self.set_tags({NOTE_TAG: markdown})

    def log_text(self, text: str, name: str) -> bool:
        """Keep `text` as the artifact `name`; whether the disk took it."""
        place = PurePosixPath(checked_name(name))
        return self._keep_file(place, lambda: self._journal.files.keep_text(text, place.name))

    def log_file(self, path: Path, folder: str = "") -> bool:
        """Keep a copy of the file at `path` as an artifact; whether the disk took it."""
        place = PurePosixPath(name_in_folder(folder, path.name))
        return self._keep_file(place, lambda: self._journal.files.keep_file(path))

    def _keep_file(self, place: PurePosixPath, copy: Callable[[], str]) -> bool:
        folder = "" if place.parent == PurePosixPath(".") else str(place.parent)

        def write() -> None:
            kept = copy()
            try:
                self._journal.append(FileEntry(kept, folder))
            except StoreError:
                self._journal.files.drop(kept)
                raise

        self._journal.check_open()
        self.check_owner()
        is_kept = self._is_taken(write)
        self._dropped += not is_kept
        self._sender.notify()
        return is_kept

    def grow(self, name: str, text: str, *, place: int) -> bool:
        """Write `text` into a file that grows; whether the disk took it."""
        self._journal.check_open()
        self.check_owner(anew=False)
        return self._grow(checked_file_name(name), text.encode(), place)

    def _grow(self, name: str, data: bytes, place: int) -> bool:
        is_kept = self._is_taken(lambda: self._growing.write(name, data, place=place))
        self._dropped += not is_kept
        return is_kept

    def keep_events(self) -> None:
        """Keep the numbers as a TensorBoard file too, which is written anew."""
        past = self._journal.metric_entries()
        write = partial(self._grow, EVENTS_NAME)
        self._events = EventFile(write, past, time_ms=now_ms())

    def sync(self) -> None:
        """Wait until what has grown is on the disk, as far as that works."""
        self._is_taken(self._growing.sync)

    def check_owner(self, *, anew: bool = True) -> None:
        """Raise RunLostError where another process has taken the run over."""
        self._folder.check_owner(anew=anew)

    def _is_kept(self, entry: Entry) -> bool:
        self.check_owner()
        return self._is_taken(lambda: self._journal.append(entry))

    def _is_taken(self, write: Callable[[], None]) -> bool:
        try:
            write()
        except StoreError as error:
            self._reason = str(error)
            self._disk.begin(self._reason, consequence=_CONSEQUENCE)
            return False
        self._disk.end(f"what is tracked is kept again; lost in between: {self._dropped} entries")
        return True

    def finish(self, status: RunStatus, *, wait_seconds: float = 20.0) -> FinishReport:
        """End the run, wait until all has arrived, and give the run folder back.

        A run that was taken over is left to the process that has it.
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
            self._growing.close()  # they grow no more
            for entry in growing_entries(self._folder.path):
                self._dropped += not self._is_kept(entry)
            self.check_owner()
            last: list[Entry] = [TagsEntry(self._tags)] if self._tags else []
            last.append(EndEntry(status, now_ms()))
            self._last = [entry for entry in last if not self._append_with_reserve(entry)]
            if status == "FINISHED":  # before any wait, in which this process may be killed
                self._folder.forget_checkpoints()
        return self._sender.finish(wait_seconds, last=self._last)

    def _append_with_reserve(self, entry: Entry) -> bool:
        for _ in range(2):
            try:
                self._journal.append(entry)
            except StoreError as error:
                self._reason = str(error)
                self._reserve.release()
            else:
                return True
        return False

    def _current_report(self, status: RunStatus) -> FinishReport:
        ending = self._journal.ending
        reasons = (self._reason, self._sender.failure)
        return FinishReport(
            status=ending.status if ending else status,
            waiting=self._journal.waiting,
            refused=self._sender.refused,
            dropped=self._dropped + self._sender.unsent,
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
    sender = Sender(
        journal, sink, notify=notify, first_pause=first_pause, check_owner=folder.check_owner
    )
    tracker = JournalTracker(
        address,
        folder,
        journal=journal,
        sender=sender,
        reserve=reserve,
        notify=notify,
        logged=journal.metrics() if resumed else {},
    )
    if events or growing_file(folder.path, EVENTS_NAME).exists():
        tracker.keep_events()
    return tracker


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
