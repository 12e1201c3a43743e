"""The journal of a run: what was logged, on the disk before the call returns, until MLflow has it.

One JSON line per entry, only ever appended. How much of it the store has is kept beside it, and
from where on it lacks files of that part; that note may lag behind, because sending an entry twice
stores it once. Beside it lie copies of logged files until they are uploaded, files that grow while
the run does and become artifacts when it ends, and room on the disk for the run's last words.

A thread carries the journal to its store while the training continues: each entry at least once, in
order. Files wait apart: one that can't be stored holds back other files, and nothing else.
"""

import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

from pydantic import Field, TypeAdapter

from aimbot_lab.foundation.errors import RunLostError, StoreError
from aimbot_lab.foundation.files import (
    append_whole,
    disk_error,
    open_file,
    read_start,
    replace_file,
    sync_file,
)
from aimbot_lab.tracking.data_folder import FilesHeldError, StoreRefusedError
from aimbot_lab.tracking.tracker import Notify, Outage, RunStatus, silent

Whole = Annotated[int, Field(ge=0, lt=2**63)]  # as a store takes it


@dataclass(frozen=True)
class MetricsEntry:
    """Numbers of one step; the time is kept so that sending twice stores them once."""

    step: Whole  # environment steps
    time_ms: Whole  # since 1970
    values: Mapping[str, float]


@dataclass(frozen=True)
class TagsEntry:
    """Tags to set."""

    tags: Mapping[str, str]


@dataclass(frozen=True)
class FileEntry:
    """A file to upload."""

    # Where the copy lies, relative to the run folder: below it, whoever wrote the journal.
    kept: Annotated[str, Field(pattern=r"^(files|growing)/[^/.][^/]*/[^/]+$")]
    folder: str  # artifact folder, empty for the top


@dataclass(frozen=True)
class EndEntry:
    """The end of the run; only a `ResumeEntry` may follow."""

    status: RunStatus
    time_ms: Whole  # since 1970


@dataclass(frozen=True)
class ResumeEntry:
    """The run goes on, whether it had ended or its process had died."""

    time_ms: Whole  # since 1970


Entry = MetricsEntry | TagsEntry | FileEntry | EndEntry | ResumeEntry
_KINDS: Mapping[str, type[Entry]] = {
    "metrics": MetricsEntry,
    "tags": TagsEntry,
    "file": FileEntry,
    "end": EndEntry,
    "resume": ResumeEntry,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_FORMS = {name: TypeAdapter[Entry](kind) for name, kind in _KINDS.items()}
_FILE_BEGINNING = b'{"kind": "file"'


def encode(entry: Entry) -> bytes:
    """The line for `entry`, its newline included."""
    return json.dumps({"kind": _NAMES[type(entry)], **vars(entry)}).encode() + b"\n"


def is_file(line: bytes) -> bool:
    """Whether `line` says that it holds a `FileEntry`: faster than to decode it."""
    return line.startswith(_FILE_BEGINNING)


def decode(line: bytes) -> Entry:
    """The entry of `line`. Raises ValueError if it is invalid."""
    try:
        fields = json.loads(line)
        return _FORMS[fields.pop("kind")].validate_python(fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a journal entry: {line[:80]!r}") from error


_KEPT_FOLDER = "files"


class KeptCopies:
    """The copies in one run folder, named by their path relative to it."""

    def __init__(self, run_folder: Path) -> None:
        self._run_folder = run_folder

    def keep_text(self, text: str, name: str) -> str:
        """Where `text` now lies as a file called `name`, on the disk."""
        with self._new_file(name) as path:
            path.write_text(text, encoding="utf-8", newline="")
        return self._relative(path)

    def keep_file(self, source: Path) -> str:
        """Where a copy of `source` now lies, on the disk. Raises OSError where it can't be read."""
        with (
            source.open("rb") as original,
            self._new_file(source.name) as path,
            path.open("wb") as copy,
        ):
            shutil.copyfileobj(original, copy)
        return self._relative(path)

    def path(self, kept: str) -> Path:
        """The copy that `kept` names; it is gone once it was uploaded."""
        return self._run_folder / kept

    def drop(self, kept: str) -> None:
        """Delete a copy that is no longer needed; a growing file is not a copy and stays."""
        if kept.startswith(f"{_KEPT_FOLDER}/"):
            shutil.rmtree(self.path(kept).parent, ignore_errors=True)

    @contextmanager
    def _new_file(self, name: str) -> Iterator[Path]:
        """A path to write to; on the disk afterwards, or StoreError and nothing left behind."""
        # A folder of its own, because an artifact is called as its file is.
        folder = self._run_folder / _KEPT_FOLDER / uuid.uuid4().hex
        try:
            folder.parent.mkdir(exist_ok=True)
            folder.mkdir()
            yield folder / name
            sync_file(folder / name)
            sync_file(folder)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise disk_error(folder / name, error) from error

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._run_folder).as_posix()


_GROWING_FOLDER = "growing"


class GrowingFiles:
    """The growing files in one run folder, written by one process."""

    def __init__(self, run_folder: Path) -> None:
        self._run_folder = run_folder
        self._descriptors: dict[str, int] = {}

    def write(self, name: str, data: bytes, *, place: int) -> None:
        """Write `data` at byte `place`, or at the end of a shorter file; nothing lies behind it.

        Raises StoreError where the disk refuses.
        """
        path = growing_file(self._run_folder, name)
        try:
            if name not in self._descriptors:
                path.parent.mkdir(parents=True, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                self._descriptors[name] = os.open(path, flags, 0o600)
            descriptor = self._descriptors[name]
            at = min(place, os.fstat(descriptor).st_size)
            os.ftruncate(descriptor, at)
            rest = memoryview(data)
            while rest:
                written = os.pwrite(descriptor, rest, at)
                at, rest = at + written, rest[written:]
        except OSError as error:
            raise disk_error(path, error) from error

    def sync(self) -> None:
        """Wait until all of it is on the disk. Raises StoreError where that refuses."""
        for name, descriptor in self._descriptors.items():
            try:
                os.fsync(descriptor)
            except OSError as error:
                raise disk_error(growing_file(self._run_folder, name), error) from error

    def close(self) -> None:
        """Close all files; they stay where they are."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


def growing_file(run_folder: Path, name: str) -> Path:
    """Where the growing file `name` of a run lies as long as the run is not delivered."""
    # TensorBoard takes whatever has `tfevents` in its name for a file, and so reads no such folder.
    return run_folder / _GROWING_FOLDER / name.replace("tfevents", "events") / name


def detach_growing(run_folder: Path) -> None:
    """Put copies in the places of the growing files, which no descriptor of another process has.

    Raises OSError where the disk refuses.
    """
    for path in (run_folder / _GROWING_FOLDER).glob("*/*"):
        if not path.name.startswith("."):
            replace_file(path, read_start(path))


def growing_entries(run_folder: Path) -> Sequence[FileEntry]:
    """The growing files of a run as entries of a journal."""
    folder = run_folder / _GROWING_FOLDER
    files = sorted(path for path in folder.glob("*/*") if not path.name.startswith("."))
    return [FileEntry(path.relative_to(run_folder).as_posix(), "") for path in files]


RESERVE_NAME = "reserve"
RESERVED_BYTES = 128 * 1024  # a note of 8,000 characters, some tags, and the end


class Reserve:
    """A file in the run folder that is deleted when its room is needed."""

    def __init__(self, run_folder: Path) -> None:
        self._path = run_folder / RESERVE_NAME

    def take(self) -> None:
        """Fill the file. Raises StoreError where the disk has no room even for that."""
        try:
            # Random, because some file systems store zeros in no room at all.
            replace_file(self._path, os.urandom(RESERVED_BYTES))
        except OSError as error:
            raise disk_error(self._path, error) from error

    def release(self) -> None:
        """Give the room back; doing so twice changes nothing."""
        with suppress(OSError):
            self._path.unlink()


JOURNAL_NAME = "journal.jsonl"
_DELIVERED_NAME = "delivered"
_END_BYTES = 4096  # in which the last entry lies, if it is an end
_CLOSED = -1  # a descriptor that every call refuses


class Pending(NamedTuple):
    """Entries that the store does not have yet, oldest first."""

    entries: list[Entry]
    end: int  # byte offset behind the last of them
    unreadable: int  # lines among them that hold no entry

    @property
    def lines(self) -> int:
        """How many lines of the journal these are."""
        return len(self.entries) + self.unreadable


class Journal:
    """A run's journal in its folder: opened, or created if missing.

    A line that a crash left torn is cut off. One process appends; all methods may be called from
    any thread. Raises StoreError where the disk refuses.
    """

    def __init__(self, run_folder: Path) -> None:
        self.files = KeptCopies(run_folder)
        self._path = run_folder / JOURNAL_NAME
        self._delivered_path = run_folder / _DELIVERED_NAME
        self._lock = threading.Lock()
        self._torn = False  # whether something other than an entry lies behind the end
        self._descriptor = _CLOSED
        self._end = 0
        try:
            written = self._open(run_folder)
        except OSError as error:
            raise disk_error(self._path, error) from error
        delivered, held_from = _read_delivered(self._delivered_path)
        self._delivered = min(delivered, self._end)
        self._held_from = min(held_from, self._delivered)
        self._waiting = written.count(b"\n", self._delivered)
        self._ending = _last_entry_as_end(written[: self._end])

    @property
    def ending(self) -> EndEntry | None:
        """The end of the run, None while it has none."""
        return self._ending

    @property
    def is_delivered(self) -> bool:
        """Whether the store has every entry."""
        return not (self.entries_wait or self.files_wait)

    @property
    def entries_wait(self) -> bool:
        """Whether there are pending entries."""
        return self._delivered < self._end

    @property
    def files_wait(self) -> bool:
        """Whether files among the entries before those were held back."""
        return self._held_from < self._delivered

    @property
    def waiting(self) -> int:
        """Number of lines that are not delivered."""
        return self._waiting + len(self.held_files())

    @property
    def written_ms(self) -> int:
        """When the journal was last written, in milliseconds since 1970."""
        return os.fstat(self._descriptor).st_mtime_ns // 1_000_000

    def check_open(self) -> None:
        """Raise RuntimeError after the end of the run."""
        if self._ending is not None:
            raise RuntimeError("the run has ended: nothing more can be logged to it")

    def append(self, entry: Entry) -> None:
        """Keep `entry`; it is on the disk when this returns.

        Raises StoreError, leaving the journal as it was, where the disk refuses, and
        RuntimeError after the end of the run for all but a `ResumeEntry`.
        """
        line = encode(entry)
        with self._lock:
            if not isinstance(entry, ResumeEntry):
                self.check_open()
            try:
                self._write(line)
            except OSError as error:
                raise disk_error(self._path, error) from error
            self._end += len(line)
            self._waiting += 1
            self._ending = entry if isinstance(entry, EndEntry) else None

    def metrics(self) -> dict[int, set[str]]:
        """The names of the numbers that were kept, by their step."""
        names: dict[int, set[str]] = {}
        for entry in self.metric_entries():
            names.setdefault(entry.step, set()).update(entry.values)
        return names

    def metric_entries(self) -> Iterator[MetricsEntry]:
        """The numbers that were kept, oldest first."""
        for line in self._lines(since=0):
            with suppress(ValueError):
                entry = decode(line)
                if isinstance(entry, MetricsEntry):
                    yield entry

    def pending(self, limit: int) -> Pending:
        """The first `limit` lines that are not delivered, without held files."""
        entries: list[Entry] = []
        unreadable = 0
        end = self._delivered
        for line in islice(self._lines(since=end), limit):
            end += len(line) + 1
            try:
                entries.append(decode(line))
            except ValueError:
                unreadable += 1
        return Pending(entries, end, unreadable)

    def held_files(self) -> list[FileEntry]:
        """The files before the pending entries that the store lacks, oldest first."""
        if not self.files_wait:
            return []
        return _present_files(self._lines(since=self._held_from, until=self._delivered), self.files)

    def mark_delivered(self, pending: Pending, *, held: bool = False) -> None:
        """Note that the store has what `pending` contained, with `held` all but its files."""
        with self._lock:
            if not (held or self.files_wait):
                self._held_from = pending.end
            self._delivered = pending.end
            self._waiting -= pending.lines
        self._keep_note()

    def mark_files_delivered(self) -> None:
        """Note that the store has the files that were held."""
        with self._lock:
            self._held_from = self._delivered
        self._keep_note()

    def close(self) -> None:
        """Close the file; nothing can be appended or read afterwards."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, _CLOSED
            os.close(descriptor)

    def _keep_note(self) -> None:
        held_from = f" {self._held_from}" if self.files_wait else ""
        # Where the disk refuses, the note lags behind.
        with suppress(OSError):
            replace_file(self._delivered_path, f"{self._delivered}{held_from}".encode())

    def _write(self, line: bytes) -> None:
        if self._torn:
            os.ftruncate(self._descriptor, self._end)
        self._torn = True
        append_whole(self._descriptor, line)
        self._torn = False

    def _open(self, run_folder: Path) -> bytes:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o600)
        sync_file(run_folder)
        written = read_start(self._path)
        self._end = written.rfind(b"\n") + 1
        if len(written) > self._end:
            os.ftruncate(self._descriptor, self._end)
        return written

    def _lines(self, *, since: int, until: int | None = None) -> list[bytes]:
        # By descriptor, because the folder may be deleted under a run.
        try:
            with self._lock:
                end = self._end if until is None else until
                data = os.pread(self._descriptor, end - since, since)
        except OSError as error:
            raise disk_error(self._path, error) from error
        return data.split(b"\n")[:-1]


def count_waiting(run_folder: Path) -> int:
    """How many entries of the journal in `run_folder` its store lacks; changes nothing.

    A run without an end lacks that as well.
    """
    try:
        written = read_start(run_folder / JOURNAL_NAME)
    except OSError:
        written = b""
    written = written[: written.rfind(b"\n") + 1]
    delivered, held_from = _read_delivered(run_folder / _DELIVERED_NAME)
    held = _present_files(written[held_from:delivered].split(b"\n"), KeptCopies(run_folder))
    return written.count(b"\n", delivered) + len(held) + (_last_entry_as_end(written) is None)


def stored_ending(run_folder: Path) -> RunStatus | None:
    """How the run of the journal in `run_folder` ended; None where it has no end."""
    try:
        with open_file(run_folder / JOURNAL_NAME) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _END_BYTES, 0))
            end = _last_entry_as_end(file.read())
    except OSError:
        return None
    return None if end is None else end.status


def _read_delivered(path: Path) -> tuple[int, int]:
    """The byte offsets before which the store has all but held files, and before which those."""
    try:
        offsets = [max(int(word), 0) for word in read_start(path).split()]
        return offsets[0], offsets[-1]
    except (OSError, ValueError, IndexError):
        return 0, 0


def _present_files(lines: list[bytes], kept: KeptCopies) -> list[FileEntry]:
    """The files of `lines` whose copies are still here: the others have been stored."""
    found = []
    for line in filter(is_file, lines):
        with suppress(ValueError):
            entry = decode(line)
            if isinstance(entry, FileEntry) and kept.path(entry.kept).exists():
                found.append(entry)
    return found


def _last_entry_as_end(lines: bytes) -> EndEntry | None:
    last = lines.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        entry = decode(last)
    except ValueError:
        return None
    return entry if isinstance(entry, EndEntry) else None


ENTRIES_PER_BATCH = 64
Refuse = Callable[[str], None]  # is told why an entry was refused for ever


class EntrySink(Protocol):
    """One run in a store."""

    def send(self, entries: Sequence[Entry]) -> None:
        """Store `entries`, all of one kind; sending an entry again changes nothing.

        Raises StoreRefusedError where the store will never take them, FilesHeldError where it
        takes no files now, and any other StoreError where it is worth trying again.
        """


def deliver_batch(
    journal: Journal, sink: EntrySink, *, refuse: Refuse, with_files: bool = True
) -> None:
    """Send the next few entries; with `with_files` also the files that were held before.

    Without it, files among the entries are held from now on. Raises FilesHeldError where files
    wait that were tried, once all else has been sent; StoreError where the store can't be reached:
    the same entries come again next time.
    """
    fault = None
    if with_files and journal.files_wait:
        fault = send_files(journal, sink, journal.held_files())
        if fault is None:
            journal.mark_files_delivered()
    pending, held = journal.pending(ENTRIES_PER_BATCH), False
    for _ in range(pending.unreadable):
        refuse("a journal line was unreadable")
    for kind, group in groupby(pending.entries, type):
        if kind is not FileEntry:
            send_group(sink, list(group), refuse)
            continue
        if with_files and fault is None:
            files = [entry for entry in group if isinstance(entry, FileEntry)]
            fault = send_files(journal, sink, files)
        held = held or not with_files or fault is not None
    if pending.lines:
        journal.mark_delivered(pending, held=held)
    if fault is not None:
        raise FilesHeldError(str(fault)) from fault


def send_files(journal: Journal, sink: EntrySink, files: Sequence[FileEntry]) -> StoreError | None:
    """Why some of `files` wait, None once all are sent; copies of those that are sent are deleted.

    Raises StoreError where the store can't be reached.
    """
    fault: StoreError | None = None
    for entry in files:
        try:
            sink.send([entry])
        except StoreRefusedError as error:  # as it is too large: others may not be
            fault = error
        except FilesHeldError as error:
            return error
        else:
            journal.files.drop(entry.kept)
    return fault


def send_group(sink: EntrySink, entries: Sequence[Entry], refuse: Refuse) -> None:
    """Send `entries`, all of one kind. Raises StoreError where the store can't be reached."""
    try:
        sink.send(entries)
    except StoreRefusedError as error:
        if len(entries) == 1:
            refuse(str(error))
            return
        # One bad entry must not take its neighbours with it.
        for entry in entries:
            send_group(sink, [entry], refuse)


FIRST_PAUSE = 0.5  # seconds until the next attempt while the store is down
MAX_PAUSE = 30.0  # seconds; pauses double up to this
SLOW = 20.0  # seconds after which an attempt that goes on counts as an outage
PATIENCE = 1.0  # seconds that the end of a run may wait without a word
FILE_TRIES = 2  # for which the end of a run waits, where files alone are left
_CONSEQUENCE = "the training continues; what it tracks waits on this machine"
_FILES_CONSEQUENCE = "the run's files wait on this machine; numbers and its status do not"
_REFUSED = "the store refuses this entry for good; the training continues"


class Sender:
    """Sends a journal's entries in the background, again and again while the store is down.

    Nothing is sent once `check_owner` raises RunLostError. `notify` is called when the store
    begins to fail, when it works again, and of a longer wait.
    """

    def __init__(
        self,
        journal: Journal,
        sink: EntrySink,
        *,
        notify: Notify = silent,
        first_pause: float = FIRST_PAUSE,
        check_owner: Callable[[], None] = lambda: None,
    ) -> None:
        self.refused = 0  # entries that the store will never take
        self._notify = notify
        self._outage, self._files_outage = Outage(self._say), Outage(self._say)
        self._refusal: str | None = None
        self._check_owner = check_owner
        self._journal = journal
        self._last: list[Entry] = []
        self._sink = sink
        self._first_pause = self._files_pause = first_pause
        self._files_due = 0.0  # when held files are tried again
        self._file_tries = 0  # that failed, at the end of the run
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._stopping = False
        self._attempt_began: float | None = None
        self._thread = threading.Thread(target=self._work, name="tracking-sender", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> str | None:
        """Why entries wait or were refused, None while all is well."""
        return self._outage.reason or self._files_outage.reason or self._refusal

    @property
    def unsent(self) -> int:
        """How many entries that no journal holds have not arrived."""
        return len(self._last)

    def notify(self) -> None:
        """Say that the journal has grown."""
        began = self._attempt_began
        if began is not None and time.monotonic() - began >= SLOW:
            self._outage.begin(
                f"nothing has reached the tracking store for {SLOW:.0f} s", consequence=_CONSEQUENCE
            )
        with self._changed:
            self._changed.notify_all()

    def finish(self, wait_seconds: float, *, last: Sequence[Entry] = ()) -> bool:
        """Whether everything has arrived, after at most `wait_seconds`; then sending stops.

        `last` are entries that the journal could not keep; they are sent after it.
        """
        self._hurry.set()
        with self._changed:
            self._last = list(last)
            self._files_due, self._files_pause = 0.0, self._first_pause
            self._file_tries = 0
            self._changed.notify_all()
            over = self._changed.wait_for(self._is_over, min(PATIENCE, wait_seconds))
        if not over and wait_seconds > PATIENCE:
            entries = self._journal.waiting + self.unsent
            reason = self._outage.reason or self._files_outage.reason
            why = f" ({reason})" if reason else ""
            self._say(
                f"waiting at most {wait_seconds - PATIENCE:.0f} s until the tracking store has "
                f"{entries} more{why}"
            )
        with self._changed:
            self._changed.wait_for(self._is_over, max(wait_seconds - PATIENCE, 0.0))
            done = self._is_done()
            self._stopping = True
            self._changed.notify_all()
        self._hurry.set()
        if done:
            self._thread.join()
        return done

    def stop(self) -> None:
        """Send nothing more, whatever waits."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._hurry.set()

    def _work(self) -> None:
        pause = self._first_pause
        while self._wait_for_work():
            try:
                self._check_owner()
                self._attempt_began = time.monotonic()
                try:
                    self._deliver()
                finally:
                    self._attempt_began = None
                if not (self._journal.entries_wait or self._last):
                    self._outage.end("the tracking store works again; all that waited has arrived")
                with self._changed:
                    self._changed.notify_all()
                pause = self._first_pause
            except RunLostError:
                return
            except StoreError as error:
                self._outage.begin(str(error), consequence=_CONSEQUENCE)
                hurried = self._hurry.wait(pause)
                self._hurry.clear()
                pause = self._first_pause if hurried else min(2 * pause, MAX_PAUSE)

    def _deliver(self) -> None:
        due = time.monotonic() >= self._files_due
        try:
            deliver_batch(self._journal, self._sink, refuse=self._refuse, with_files=due)
        except FilesHeldError as error:
            self._files_outage.begin(str(error), consequence=_FILES_CONSEQUENCE)
            self._file_tries += 1
            self._files_due = time.monotonic() + self._files_pause
            self._files_pause = min(2 * self._files_pause, MAX_PAUSE)
        if not self._journal.files_wait:
            self._files_outage.end("files are stored again; those that waited have arrived")
            self._files_pause = self._first_pause
        last = () if self._journal.entries_wait else self._last
        for entry in last:
            send_group(self._sink, [entry], self._refuse)
        if last:  # if not, the end of the run may have come meanwhile
            self._last = []

    def _refuse(self, reason: str) -> None:
        if self._refusal is None:  # the others are counted
            self._say(f"{reason}; {_REFUSED}")
        self.refused, self._refusal = self.refused + 1, reason

    def _wait_for_work(self) -> bool:
        with self._changed:
            while not self._stopping:
                if self._journal.entries_wait or self._last or self._outage.reason is not None:
                    return True
                wait = self._files_due - time.monotonic() if self._journal.files_wait else None
                if wait is not None and wait <= 0.0:
                    return True
                self._changed.wait(wait)
            return False

    def _is_over(self) -> bool:
        """Whether the end of the run waits for nothing more: all is there, or all but files."""
        files_alone = not (self._journal.entries_wait or self._last or self._outage.reason)
        return self._is_done() or (files_alone and self._file_tries >= FILE_TRIES)

    def _is_done(self) -> bool:
        # Until the end of an outage is reported, too.
        reported = self._outage.reason is None and self._files_outage.reason is None
        return self._journal.is_delivered and not self._last and reported

    def _say(self, text: str) -> None:
        if not self._stopping:
            self._notify(text)
