"""The thread that carries a journal to its store while the training goes on."""

import threading
import time
from collections.abc import Callable, Sequence

from aimbot_lab.foundation.errors import RunLostError, StoreError
from aimbot_lab.tracking.journal.delivery import EntrySink, deliver_batch, send_group
from aimbot_lab.tracking.journal.entries import Entry
from aimbot_lab.tracking.journal.journal import Journal
from aimbot_lab.tracking.journal.outage import Notify, Outage, silent

FIRST_PAUSE = 0.5  # seconds until the next attempt while the store is down
MAX_PAUSE = 30.0  # seconds; pauses double up to this
SLOW = 20.0  # seconds after which an attempt that goes on counts as an outage
PATIENCE = 1.0  # seconds that the end of a run may wait without a word
_CONSEQUENCE = "the training goes on; what it tracks waits on this machine"


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
        self.refused = 0
        self._notify = notify
        self._outage = Outage(self._say)
        self._refusal: str | None = None
        self._check_owner = check_owner
        self._journal = journal
        self._last: list[Entry] = []
        self._sink = sink
        self._first_pause = first_pause
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._stopping = False
        self._attempt_began: float | None = None
        self._thread = threading.Thread(target=self._work, name="tracking-sender", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> str | None:
        """Why entries wait or were refused, None while all is well."""
        return self._outage.reason or self._refusal

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
            self._changed.notify_all()
            done = self._wait(min(PATIENCE, wait_seconds))
        if not done and wait_seconds > PATIENCE:
            self._say(self._waiting_for(wait_seconds - PATIENCE))
        with self._changed:
            done = self._wait(max(wait_seconds - PATIENCE, 0.0))
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
                self._note(self._attempt())
                pause = self._first_pause
            except RunLostError:
                return
            except StoreError as error:
                self._outage.begin(str(error), consequence=_CONSEQUENCE)
                hurried = self._hurry.wait(pause)
                self._hurry.clear()
                pause = self._first_pause if hurried else min(2 * pause, MAX_PAUSE)

    def _attempt(self) -> list[str]:
        self._check_owner()
        self._attempt_began = time.monotonic()
        try:
            return self._deliver()
        finally:
            self._attempt_began = None

    def _deliver(self) -> list[str]:
        if not self._journal.is_delivered:
            return deliver_batch(self._journal, self._sink)
        last = self._last
        refusals = [line for entry in last for line in send_group(self._sink, [entry])]
        if last:  # if not, the end of the run may have come meanwhile
            self._last = []
        return refusals

    def _note(self, refusals: list[str]) -> None:
        if refusals:
            self.refused += len(refusals)
            self._refusal = refusals[-1]
        if self._has_arrived():
            self._outage.end("the tracking store works again; all that waited has arrived")
        with self._changed:
            self._changed.notify_all()

    def _wait_for_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or not self._is_done())
            return not self._stopping

    def _wait(self, seconds: float) -> bool:
        return self._changed.wait_for(self._is_done, seconds)

    def _has_arrived(self) -> bool:
        return self._journal.is_delivered and not self._last

    def _is_done(self) -> bool:
        # Until the end of an outage is reported, too.
        return self._has_arrived() and self._outage.reason is None

    def _waiting_for(self, seconds: float) -> str:
        entries = self._journal.waiting + self.unsent
        why = f" ({self._outage.reason})" if self._outage.reason else ""
        return f"waiting at most {seconds:.0f} s until the tracking store has {entries} more{why}"

    def _say(self, text: str) -> None:
        if not self._stopping:
            self._notify(text)
