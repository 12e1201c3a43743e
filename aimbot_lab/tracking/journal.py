"""The journal of a run: what was logged, on the disk before the call returns.

One JSON line per entry, only ever appended. How much of it the store has is kept beside it;
that note may lag behind, because sending an entry twice stores it once.
"""

import os
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from aimbot_lab.tracking.durable import append_whole, disk_error, replace_file, sync_file
from aimbot_lab.tracking.entries import EndEntry, Entry, decode, encode
from aimbot_lab.tracking.kept_files import KeptFiles

JOURNAL_NAME = "journal.jsonl"
_DELIVERED_NAME = "delivered"


class Pending(NamedTuple):
    """Entries that the store does not have yet, oldest first."""

    entries: list[Entry]
    end: int  # byte offset behind the last of them
    unreadable: int  # lines among them that hold no entry


class Journal:
    """A run's journal in its folder: opened, or begun where there is none.

    A line that a crash left torn is cut off. One process appends; all methods may be called from
    any thread. Raises StoreError where the disk refuses.
    """

    def __init__(self, run_folder: Path) -> None:
        self.files = KeptFiles(run_folder)
        self._path = run_folder / JOURNAL_NAME
        self._delivered_path = run_folder / _DELIVERED_NAME
        self._lock = threading.Lock()
        try:
            written = self._open(run_folder)
        except OSError as error:
            raise disk_error(self._path, error) from error
        self._delivered = min(self._read_delivered(), self._end)
        self._ending = _last_entry_as_end(written[: self._end])

    @property
    def ending(self) -> EndEntry | None:
        """The end of the run, None while it has none."""
        return self._ending

    @property
    def is_delivered(self) -> bool:
        """Whether the store has every entry."""
        return self._delivered >= self._end

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
        RuntimeError after the end of the run.
        """
        line = encode(entry)
        with self._lock:
            self.check_open()
            try:
                append_whole(self._descriptor, line)
            except OSError as error:
                os.ftruncate(self._descriptor, self._end)
                raise disk_error(self._path, error) from error
            self._end += len(line)
            self._ending = entry if isinstance(entry, EndEntry) else None

    def pending(self, limit: int) -> Pending:
        """The first `limit` lines that are not delivered."""
        entries: list[Entry] = []
        unreadable = 0
        end = self._delivered
        for line in islice(self._lines(), limit):
            end += len(line)
            try:
                entries.append(decode(line))
            except ValueError:
                unreadable += 1
        return Pending(entries, end, unreadable)

    def waiting(self) -> int:
        """Number of lines that are not delivered."""
        return sum(1 for _ in self._lines())

    def mark_delivered(self, end: int) -> None:
        """Note that the store has everything before the byte offset `end`."""
        try:
            replace_file(self._delivered_path, str(end).encode())
        except OSError as error:
            raise disk_error(self._delivered_path, error) from error
        self._delivered = end

    def close(self) -> None:
        """Close the file; nothing can be appended afterwards."""
        os.close(self._descriptor)

    def _open(self, run_folder: Path) -> bytes:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o600)
        sync_file(run_folder)
        written = self._path.read_bytes()
        self._end = written.rfind(b"\n") + 1
        if len(written) > self._end:
            os.ftruncate(self._descriptor, self._end)
        return written

    def _lines(self) -> Iterator[bytes]:
        # Up to the end known now: behind it a line may be half written.
        position, end = self._delivered, self._end
        try:
            with self._path.open("rb") as file:
                file.seek(position)
                while position < end and (line := file.readline()):
                    position += len(line)
                    yield line
        except OSError as error:
            raise disk_error(self._path, error) from error

    def _read_delivered(self) -> int:
        try:
            return int(self._delivered_path.read_bytes())
        except (OSError, ValueError):
            return 0


def _last_entry_as_end(lines: bytes) -> EndEntry | None:
    last = lines.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        entry = decode(last)
    except ValueError:
        return None
    return entry if isinstance(entry, EndEntry) else None
