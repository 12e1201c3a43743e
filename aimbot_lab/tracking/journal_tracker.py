"""The tracker that trainings use: everything goes to a journal, and from there to the store."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
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


class SafeJournal:
    """Writes a run's entries to its journal, and goes on without those that the disk refuses.

    What it writes to the journal it writes only while `check_owner` raises nothing. Growing files
    it leaves to their descriptors, which a take-over parts from the files.

    Tags that were refused are tried again with the next ones and at the end of the run, which
    has room of its own: they are few, and they say how the run ended.
    """

    def __init__(
        self,
        journal: Journal,
        reserve: Reserve,
        *,
        growing: GrowingFiles,
        notify: Notify,
        check_owner: Callable[[], None],
    ) -> None:
        self.dropped = 0  # metrics and files that could not be kept
        self.reason: str | None = None  # why the disk refused the last entry that it refused
        self.journal = journal
        self._reserve = reserve
        self._growing = growing
        self._check_owner = check_owner
        self._disk = Outage(notify)
        self._tags: dict[str, str] = {}  # set, and not on the disk

    def keep_metrics(self, entry: MetricsEntry) -> None:
        """Keep numbers, or count them as dropped."""
        self.dropped += not self._works(lambda: self.journal.append(entry))

    def keep_tags(self, entry: TagsEntry) -> None:
        """Keep tags, with those that were refused before."""
        merged = {**self._tags, **entry.tags}
        kept = self._works(lambda: self.journal.append(TagsEntry(merged)))
        self._tags = {} if kept else merged

    def keep_text(self, text: str, name: str, *, folder: str) -> bool:
        """Whether `text` is kept as the file `name` of the artifact folder `folder`."""
        return self._keep_file(lambda: self.journal.files.keep_text(text, name), folder)

    def keep_file(self, source: Path, *, folder: str) -> bool:
        """Whether a copy of `source` is kept. Raises OSError where it can't be read."""
        return self._keep_file(lambda: self.journal.files.keep_file(source), folder)

    def keep_growth(self, name: str, data: bytes, *, place: int) -> bool:
        """Whether `data` are kept in the growing file `name`."""
        kept = self._is_taken(lambda: self._growing.write(name, data, place=place))
        self.dropped += not kept
        return kept

    def sync_growth(self) -> None:
        """Flush the growing files to the disk; a disk that refuses is reported."""
        self._is_taken(self._growing.sync)

    def keep_grown(self, entries: Sequence[FileEntry]) -> None:
        """Let the growing files be delivered: they grow no more."""
        self._growing.close()
        for entry in entries:
            self.dropped += not self._works(partial(self.journal.append, entry))

    def close(self, ending: EndEntry) -> list[Entry]:
        """End the run; the last entries, its end among them, that the disk refuses even now."""
        self._check_owner()
        last: list[Entry] = [TagsEntry(self._tags)] if self._tags else []
        return [entry for entry in [*last, ending] if not self._append_with_reserve(entry)]

    def _keep_file(self, copy: Callable[[], str], folder: str) -> bool:
        def write() -> None:
            kept = copy()
            try:
                self.journal.append(FileEntry(kept, folder))
            except StoreError:
                self.journal.files.drop(kept)
                raise

        kept = self._works(write)
        self.dropped += not kept
        return kept

    def _works(self, write: Callable[[], None]) -> bool:
        self._check_owner()
        return self._is_taken(write)

    def _is_taken(self, write: Callable[[], None]) -> bool:
        try:
            write()
        except StoreError as error:
            self.reason = str(error)
            self._disk.begin(self.reason, consequence=_CONSEQUENCE)
            return False
        self._disk.end(f"what is tracked is kept again; lost in between: {self.dropped} entries")
        return True

    def _append_with_reserve(self, entry: Entry) -> bool:
        for _ in range(2):
            try:
                self.journal.append(entry)
            except StoreError as error:
                self.reason = str(error)
                self._reserve.release()
            else:
                return True
        return False


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
