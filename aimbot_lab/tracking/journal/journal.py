"""The journal of a run: what was logged, on the disk before the call returns.

One JSON line per entry, only ever appended. How much of it the store has is kept beside it, and
from where on it lacks files of that part; that note may lag behind, because sending an entry twice
stores it once.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from aimbot_lab.tracking.journal.durable import append_whole, disk_error, replace_file, sync_file
from aimbot_lab.tracking.journal.entries import (
    EndEntry,
    Entry,
    FileEntry,
    MetricsEntry,
    ResumeEntry,
    decode,
    encode,
    is_file,
)
from aimbot_lab.tracking.journal.kept_files import KeptFiles
from aimbot_lab.tracking.tracker import RunStatus

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
        self.files = KeptFiles(run_folder)
        self._path = run_folder / JOURNAL_NAME
        self._delivered_path = run_folder / _DELIVERED_NAME
        self._lock = threading.Lock()
        self._torn = False  # whether something that is no entry lies behind the end
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
        written = self._path.read_bytes()
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
        written = (run_folder / JOURNAL_NAME).read_bytes()
    except OSError:
        written = b""
    written = written[: written.rfind(b"\n") + 1]
    delivered, held_from = _read_delivered(run_folder / _DELIVERED_NAME)
    held = _present_files(written[held_from:delivered].split(b"\n"), KeptFiles(run_folder))
    return written.count(b"\n", delivered) + len(held) + (_last_entry_as_end(written) is None)


def stored_ending(run_folder: Path) -> RunStatus | None:
    """How the run of the journal in `run_folder` ended; None where it has no end."""
    try:
        with (run_folder / JOURNAL_NAME).open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _END_BYTES, 0))
            end = _last_entry_as_end(file.read())
    except OSError:
        return None
    return None if end is None else end.status


def _read_delivered(path: Path) -> tuple[int, int]:
    """The byte offsets before which the store has all but held files, and before which those."""
    try:
        offsets = [max(int(word), 0) for word in path.read_bytes().split()]
        return offsets[0], offsets[-1]
    except (OSError, ValueError, IndexError):
        return 0, 0


def _present_files(lines: list[bytes], kept: KeptFiles) -> list[FileEntry]:
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
