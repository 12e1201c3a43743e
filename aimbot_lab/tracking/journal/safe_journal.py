"""Keeping entries on a disk that may refuse them: nothing fails, and what is lost is counted."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking.journal.disk_reserve import Reserve
from aimbot_lab.tracking.journal.entries import EndEntry, Entry, FileEntry, MetricsEntry, TagsEntry
from aimbot_lab.tracking.journal.growing_files import GrowingFiles
from aimbot_lab.tracking.journal.journal import Journal
from aimbot_lab.tracking.journal.outage import Notify, Outage

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
