"""Carrying a journal's entries to a store, each at least once and in order.

Files wait apart: one that can't be stored holds back other files, and nothing else.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking.journal.entries import Entry, FileEntry
from aimbot_lab.tracking.journal.journal import Journal

ENTRIES_PER_BATCH = 64
Refuse = Callable[[str], None]  # is told why an entry was refused for ever


class StoreRefusedError(StoreError):
    """The store is there and will never take this entry."""


class RunRefusedError(StoreError):
    """The store is there, and takes nothing of this run until it is restored."""


class FilesHeldError(StoreError):
    """The store is there, and takes no file now, though it takes the rest."""


class EntrySink(Protocol):
    """One run in a store."""

    def send(self, entries: Sequence[Entry]) -> None:
        """Store `entries`, all of one kind; sending an entry again changes nothing.

        Raises StoreRefusedError where the store will never take them, FilesHeldError where it
        takes no files now, and any other StoreError where it is worth trying again.
        """
        ...


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
