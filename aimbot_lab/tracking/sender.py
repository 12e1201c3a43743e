"""Carries a journal to its store while the training goes on: each entry at least once, in order.

Files wait apart: one that can't be stored holds back other files, and nothing else.
"""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

from aimbot_lab.foundation.errors import RunLostError, StoreError
from aimbot_lab.tracking.journal import Entry, FileEntry, Journal
from aimbot_lab.tracking.store_errors import FilesHeldError, StoreRefusedError
from aimbot_lab.tracking.tracker import Notify, Outage, silent

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
_CONSEQUENCE = "the training goes on; what it tracks waits on this machine"
_FILES_CONSEQUENCE = "the run's files wait on this machine; numbers and its status do not"
_REFUSED = "the store refuses this entry for good; the training goes on"


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
            self._say(self._waiting_for(wait_seconds - PATIENCE))
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
            while not (self._stopping or self._has_work()):
                wait = self._files_due - time.monotonic() if self._journal.files_wait else None
                self._changed.wait(wait)
            return not self._stopping

    def _has_work(self) -> bool:
        if self._journal.entries_wait or self._last or self._outage.reason is not None:
            return True
        return self._journal.files_wait and time.monotonic() >= self._files_due

    def _is_over(self) -> bool:
        """Whether the end of the run waits for nothing more: all is there, or all but files."""
        files_alone = not (self._journal.entries_wait or self._last or self._outage.reason)
        return self._is_done() or (files_alone and self._file_tries >= FILE_TRIES)

    def _is_done(self) -> bool:
        # Until the end of an outage is reported, too.
        reported = self._outage.reason is None and self._files_outage.reason is None
        return self._journal.is_delivered and not self._last and reported

    def _waiting_for(self, seconds: float) -> str:
        entries = self._journal.waiting + self.unsent
        reason = self._outage.reason or self._files_outage.reason
        why = f" ({reason})" if reason else ""
        return f"waiting at most {seconds:.0f} s until the tracking store has {entries} more{why}"

    def _say(self, text: str) -> None:
        if not self._stopping:
            self._notify(text)
