"""The tracker that writes a run to its journal: of a new run, a resumed one, or a group of others.

Each is in the store, in the data folder, and has a thread between the two.
"""

import getpass
import math
import os
import struct
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import aimbot_lab
from aimbot_lab.foundation.errors import ConfigurationError, RunLostError, StoreError
from aimbot_lab.foundation.files import exclusive
from aimbot_lab.tracking.data_folder import (
    DataFolder,
    TrackingAddress,
    choose_address,
    kept_address,
    without_password,
)
from aimbot_lab.tracking.journal import (
    FIRST_PAUSE,
    EndEntry,
    Entry,
    EntrySink,
    FileEntry,
    GrowingFiles,
    Journal,
    MetricsEntry,
    Reserve,
    ResumeEntry,
    Sender,
    TagsEntry,
    growing_entries,
    growing_file,
)
from aimbot_lab.tracking.run_folder import (
    OWNER_TAG,
    Owner,
    RunFolder,
    create_run_folder,
    find_run_folder,
    refuse_unless_free,
    this_process,
)
from aimbot_lab.tracking.tracker import (
    MAX_PARAM,
    NOTE_TAG,
    FinishReport,
    Notify,
    Outage,
    RunStatus,
    Tracker,
    checked_file_name,
    checked_key,
    checked_metrics,
    checked_name,
    checked_tags,
    name_in_folder,
    never_raising,
    shortened,
    silent,
)
from aimbot_lab.version import code_hash

if TYPE_CHECKING:
    from aimbot_lab.tracking.mlflow_store import MlflowStore
    from aimbot_lab.tracking.settings import TrackingSettings

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


_CONSEQUENCE = "the training continues, untracked until that works"


class RunAddress(NamedTuple):
    """Where a run is found."""

    run_id: str
    experiment_id: str
    tracking_uri: str  # without a password


class JournalTracker:
    """A `Tracker` over a journal and the thread that empties it into `sink`.

    The store knows the run, whose folder here is `folder`. Entries that the disk refuses are left
    out and counted. It writes to the journal only while this process owns the run; growing files
    it leaves to their descriptors, which a take-over parts from the files. Tags that were refused
    are tried again with the next ones and at the end of the run, which has room of its own: they
    are few, and they say how the run ended.

    A run that was `resumed` from a checkpoint comes by steps again that it had logged before: each
    number is kept once. It keeps a TensorBoard file where `events` says so or the folder has one,
    which is written anew. `finish_too` is called once it has finished. Raises StoreError where the
    disk has no room for a journal.
    """

    def __init__(
        self,
        address: RunAddress,
        folder: RunFolder,
        *,
        sink: EntrySink,
        notify: Notify = silent,
        first_pause: float = FIRST_PAUSE,
        resumed: bool = False,
        events: bool = False,
        finish_too: Callable[[], None] = lambda: None,
    ) -> None:
        self._address, self._folder, self._finish_too = address, folder, finish_too
        self._reserve = Reserve(folder.path)
        self._reserve.take()
        self._journal = journal = Journal(folder.path)
        if resumed:
            journal.append(ResumeEntry(now_ms()))
        self._sender = Sender(
            journal, sink, notify=notify, first_pause=first_pause, check_owner=folder.check_owner
        )
        self._logged = journal.metrics() if resumed else {}
        self._growing = GrowingFiles(folder.path)
        self._disk = Outage(notify)
        self._dropped = 0  # metrics and files that could not be kept
        self._reason: str | None = None  # why the disk refused the last entry that it refused
        self._tags: dict[str, str] = {}  # set, and not on the disk
        self._events: EventFile | None = None
        self._last: list[Entry] = []
        self._report: FinishReport | None = None
        if events or growing_file(folder.path, EVENTS_NAME).exists():
            write, past = partial(self._grow, EVENTS_NAME), journal.metric_entries()
            self._events = EventFile(write, past, time_ms=now_ms())

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

    def finish(
        self, status: RunStatus, *, wait_seconds: float = 20.0, resumable: bool = False
    ) -> FinishReport:
        """End the run, wait until all has arrived, and give the run folder back.

        A run that was taken over is left to the process that has it.
        """
        if self._report is None:
            try:
                delivered = self._end(status, wait_seconds, resumable=resumable)
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
                self._folder.settle()
            else:
                self._folder.release()
            self._finish_too()
        return self._report

    def _end(self, status: RunStatus, wait_seconds: float, *, resumable: bool) -> bool:
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
            # Before any wait, in which this process may be killed.
            if status == "FINISHED" and not resumable:
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


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


_NOT_HEEDED: Mapping[str, str] = MappingProxyType(
    {
        "MLFLOW_EXPERIMENT_ID": "MLFLOW_EXPERIMENT_NAME or tracking.experiment name the experiment",
        "MLFLOW_RUN_ID": "a training is a new run; aimbot-lab resume resumes one",
    }
)
"""What others who log to MLflow read, and what has its effect here."""


@dataclass(frozen=True)
class RunDescription:
    """What is known of a run when it begins."""

    name: str
    params: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)  # flat
    tags: Mapping[str, str] = field(default_factory=dict)


def open_store(data_folder: DataFolder, address: TrackingAddress) -> "MlflowStore":
    """The store at `address`, as `mlflow_store.connect` gives it."""
    # MLflow takes a second to import: only what needs it pays.
    from aimbot_lab.tracking.mlflow_store import connect

    return connect(data_folder, address)


def open_run(
    data_folder: DataFolder,
    settings: "TrackingSettings",
    description: RunDescription,
    *,
    tracking_uri: str | None = None,
    on_outage: Notify = silent,
) -> Tracker:
    """A tracker for a new run, on the store that counts (`choose_address`).

    `on_outage` is called with one line when the store or the disk begins to fail and when it works
    again, and what the end of the run waits for; it may be called from another thread.
    Raises ConfigurationError for an address that can't be used, StoreError where the store or
    the data folder can't, ValueError for a name that MLflow refuses; then no run is left behind.
    """
    texts = {
        checked_key(key): without_password(str(value)) for key, value in description.params.items()
    }
    params = {key: shortened(text, MAX_PARAM) for key, text in texts.items()}
    tags = checked_tags({k: without_password(tag) for k, tag in description.tags.items()})
    address = choose_address(data_folder, explicit=tracking_uri, setting=settings.uri)
    store = open_store(data_folder, address)
    experiment_id = store.experiment_id(settings.experiment)
    owner = this_process(uuid.uuid4().hex, None if address.embedded else address.uri)
    folder = create_run_folder(data_folder, owner)
    try:
        run_id = store.create_run(
            experiment_id, description.name, tags={**tags, **_own_tags(owner)}
        )
        store.log_params(run_id, params)
        folder = folder.named(run_id)
        run = RunAddress(run_id, experiment_id, address.shown)
        sink = store.run(run_id, folder.path)
        notify = never_raising(on_outage)
        for name, instead in _NOT_HEEDED.items():
            if os.environ.get(name):
                notify(f"environment variable {name} is ignored; {instead}")
        return JournalTracker(
            run,
            folder,
            sink=sink,
            notify=notify,
            events=settings.tensorboard,
            finish_too=store.monitor_system(run_id, resumed=False),
        )
    except BaseException:
        _undo(store, folder)
        raise


def check_destination(
    data_folder: DataFolder, settings: "TrackingSettings", *, tracking_uri: str | None = None
) -> None:
    """Raise ConfigurationError where `open_run` could only fail; asks no server, makes nothing."""
    address = choose_address(data_folder, explicit=tracking_uri, setting=settings.uri)
    file = address.sqlite_file
    if not address.embedded and file is not None and not file.parent.is_dir():
        raise ConfigurationError(
            f"tracking address {address.shown}: there is no folder {file.parent}"
        )
    data_folder.check()


def check_server(
    data_folder: DataFolder, settings: "TrackingSettings", *, tracking_uri: str | None = None
) -> None:
    """Raise StoreError where runs would go to a tracking server that does not answer."""
    address = choose_address(data_folder, explicit=tracking_uri, setting=settings.uri)
    if address.is_server:
        open_store(data_folder, address)


def _undo(store: "MlflowStore", folder: RunFolder) -> None:
    # Asked by token, because the store may have made the run although the call failed.
    try:
        run_id = store.find_run(folder.owner.token)
        if run_id is not None:
            store.discard_run(run_id)
    except StoreError:
        folder.release()
    else:
        folder.remove()


def _own_tags(owner: Owner) -> dict[str, str]:
    return {
        "mlflow.user": _user_name(),
        "mlflow.source.name": "aimbot-lab",
        "mlflow.source.type": "LOCAL",
        "lab.version": aimbot_lab.__version__,
        "lab.code": code_hash(),
        OWNER_TAG: owner.label,
    }


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a number that has no name.
        return "unknown"


def rejoin_run(
    data_folder: DataFolder,
    settings: "TrackingSettings",
    run_id: str,
    *,
    tracking_uri: str | None = None,
) -> Tracker:
    """A tracker that resumes the run `run_id`, which is RUNNING again.

    What its last writer left undelivered on this machine must have been delivered before
    (`close_orphan_runs`). Raises ConfigurationError for an address that can't be used, StoreError
    where the store or the data folder can't, where there is no such run, or where a living process
    writes to it.
    """
    address = choose_address(data_folder, explicit=tracking_uri, setting=settings.uri)
    store = open_store(data_folder, address)
    owner = this_process(uuid.uuid4().hex, None if address.embedded else address.uri)
    folder = create_run_folder(data_folder, owner)
    try:
        folder = folder.named(run_id)
        run = RunAddress(run_id, store.experiment_of(run_id), address.shown)
        tracker = JournalTracker(run, folder, sink=store.run(run_id, folder.path), resumed=True)
    except BaseException:
        folder.remove()
        raise
    tracker.set_tags({OWNER_TAG: folder.owner.label})
    return tracker


def claim_run(
    data_folder: DataFolder,
    run_id: str,
    *,
    take_over: bool = False,
    tracking_uri: str | None = None,
) -> RunFolder:
    """The folder of a run, which this process owns until it releases it.

    With `take_over` also where another process may still train it, which then stops. Where the
    file that names its store is damaged, that is the one at `tracking_uri`, None for the embedded
    one. Raises ConfigurationError where the run has no folder here or another process has it,
    StoreError where the disk refuses; then its owner has it still.
    """
    # Held by a process that closes dead runs or takes one over.
    with exclusive(data_folder.orphan_lock):
        folder = _folder_of(data_folder, run_id)
        if not take_over:
            refuse_unless_free(folder)
        return folder.taken_over(_successor(folder, tracking_uri))


def reopen_run(
    data_folder: DataFolder,
    run_id: str,
    *,
    claimed: RunFolder | None = None,
    on_outage: Notify = silent,
) -> Tracker:
    """A tracker that resumes a run of this data folder, on the store where it was started.

    The run may be `claimed` already, else it is now. What it had logged before it does not log
    again. `on_outage` is as for `open_run`.
    Raises ConfigurationError where the run has no folder here or another process has it, and
    StoreError where the store can't be used or has no such run; then nothing has changed. Where
    the disk refuses, which is a StoreError too, what was claimed here is given back, be it to an
    owner that may live; what the caller claimed is the caller's to give back.
    """
    found = claimed or _folder_of(data_folder, run_id)
    store, run = _stored(data_folder, run_id, found.owner.tracking_uri)
    folder = claimed or claim_run(data_folder, run_id)
    try:
        if folder.hold is not None and folder.hold.before is not None:
            folder.part()
        folder.unsettle()
        data_folder.drop_unfinished_copies(run_id)
        tracker = JournalTracker(
            run,
            folder,
            sink=store.run(run.run_id, folder.path),
            notify=never_raising(on_outage),
            resumed=True,
            finish_too=store.monitor_system(run.run_id, resumed=True),
        )
    except BaseException:
        if claimed is None:
            folder.give_back()
        raise
    tracker.set_tags({OWNER_TAG: folder.owner.label})
    return tracker


def check_reopening(
    data_folder: DataFolder, run_id: str, *, tracking_uri: str | None = None
) -> None:
    """Raise what `reopen_run` would where the run's folder or store is missing; changes nothing.

    `tracking_uri` is as for `claim_run`.
    """
    owner = _successor(_folder_of(data_folder, run_id), tracking_uri)
    _stored(data_folder, run_id, owner.tracking_uri)


def _folder_of(data_folder: DataFolder, run_id: str) -> RunFolder:
    folder = find_run_folder(data_folder, run_id)
    if folder is None:
        raise ConfigurationError(f"run {run_id} has no folder in {data_folder.runs}")
    return folder


def _stored(
    data_folder: DataFolder, run_id: str, uri: str | None
) -> tuple["MlflowStore", RunAddress]:
    """The store at `uri`, None for the embedded one, and where the run is found in it."""
    address = kept_address(data_folder, uri)
    store = open_store(data_folder, address)
    return store, RunAddress(run_id, store.experiment_of(run_id), address.shown)


def _successor(folder: RunFolder, tracking_uri: str | None) -> Owner:
    before = folder.owner
    if before.is_unknown:
        return this_process(str(folder.run_id), tracking_uri)
    return this_process(before.token, before.tracking_uri)
