"""The tracker that trainings use: everything goes to a journal, and from there to the store."""

import math
import struct
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aimbot_lab.foundation.errors import RunLostError, StoreError
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
from aimbot_lab.tracking.run_folder import RunFolder
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

EVENTS_NAME = "events.out.tfevents.aimbot-lab"  # TensorBoard looks for `tfevents` in names
_FILE_VERSION = b"brain.Event:2"
_POLYNOMIAL = 0x82F63B78  # Castagnoli's, reflected (RFC 3720, appendix B.4)
_MASK = 0xA282EAD8
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5  # wire types of protocol buffers
Write = Callable[[bytes, int], bool]  # of data at a byte offset: whether they were kept


class EventFile:
    """The event file of a run, which `write` keeps; it begins with all that is in `past`."""

    def __init__(self, write: Write, past: Iterable[MetricsEntry], *, time_ms: int) -> None:
        self._write = write
        self._first = record(_event(time_ms, _field(3, _BYTES, _FILE_VERSION)))
        self._size = 0
        self._append(b"".join(map(metrics_record, past)))

    def add(self, entry: MetricsEntry) -> None:
        """Add the numbers of one step; what the disk refuses is missing."""
        self._append(metrics_record(entry))

    def _append(self, data: bytes) -> None:
        whole = data if self._size else self._first + data
        if self._write(whole, self._size):
            self._size += len(whole)


def metrics_record(entry: MetricsEntry) -> bytes:
    """The record of an event with all numbers of `entry`; one beyond 32 bits is NaN there."""
    values = b"".join(_field(1, _BYTES, _scalar(*one)) for one in entry.values.items())
    return record(_event(entry.time_ms, _field(2, _VARINT, entry.step), _field(5, _BYTES, values)))


def record(data: bytes) -> bytes:
    """`data` in the frame of a TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + _masked_crc(length) + data + _masked_crc(data)


def crc32c(data: bytes) -> int:
    """The cyclic redundancy check CRC-32C of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _table() -> tuple[int, ...]:
    """The remainders of all bytes."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_TABLE = _table()


def _masked_crc(data: bytes) -> bytes:
    crc = crc32c(data)
    rotated = (crc >> 15) | (crc << 17)
    return struct.pack("<I", (rotated + _MASK) & 0xFFFFFFFF)


def _event(time_ms: int, *fields: bytes) -> bytes:
    return _field(1, _DOUBLE, struct.pack("<d", time_ms / 1000)) + b"".join(fields)


def _scalar(tag: str, value: float) -> bytes:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", math.nan)
    return _field(1, _BYTES, tag.encode()) + _field(2, _FLOAT, packed)


def _field(number: int, wire_type: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer: its key, and its value as the wire type says."""
    key = _varint(number << 3 | wire_type)
    if isinstance(value, int):
        return key + _varint(value)
    return key + (_varint(len(value)) if wire_type == _BYTES else b"") + value


def _varint(number: int) -> bytes:
    """`number`, not negative, in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


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
            ending = self._journal.ending
            reasons = (self._reason, self._sender.failure)
            self._report = FinishReport(
                status=ending.status if ending else status,
                waiting=self._journal.waiting,
                refused=self._sender.refused,
                dropped=self._dropped + self._sender.unsent,
                failure="; ".join(reason for reason in reasons if reason) or None,
            )
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
