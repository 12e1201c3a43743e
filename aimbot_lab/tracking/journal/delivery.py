"""Carrying a journal's entries to a store, each at least once and in order."""

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking.journal.entries import Entry, FileEntry
from aimbot_lab.tracking.journal.journal import Journal

ENTRIES_PER_BATCH = 64


class StoreRefusedError(StoreError):
    """The store is there and will never take this entry."""


class EntrySink(Protocol):
    """One run in a store."""

    def send(self, entries: Sequence[Entry]) -> None:
        """Store `entries`, all of one kind; sending an entry again changes nothing.

        Raises StoreRefusedError where the store will never take them, any other StoreError
        where it is worth trying again.
        """
        ...


def deliver_batch(journal: Journal, sink: EntrySink) -> list[str]:
    """Send the next few entries; why the store refused some of them for ever, one line each.

    Raises StoreError where the store can't be reached; the same entries come again next time.
    """
    pending = journal.pending(ENTRIES_PER_BATCH)
    refusals = ["a journal line was unreadable"] * pending.unreadable
    for _, group in groupby(pending.entries, type):
        refusals += send_group(sink, list(group))
    journal.mark_delivered(pending)
    for entry in pending.entries:
        if isinstance(entry, FileEntry):
            journal.files.drop(entry.kept)
    return refusals


def send_group(sink: EntrySink, entries: Sequence[Entry]) -> list[str]:
    """Send `entries`, all of one kind; why the store refused some of them, one line each.

    Raises StoreError where the store can't be reached.
    """
    try:
        sink.send(entries)
    except StoreRefusedError as error:
        if len(entries) == 1:
            return [str(error)]
        # One bad entry must not take its neighbours with it.
        return [refusal for entry in entries for refusal in send_group(sink, [entry])]
    return []
