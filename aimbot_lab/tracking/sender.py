"""The thread that carries a journal to its store while the training goes on."""

import threading

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking.delivery import EntrySink, deliver_helping
from aimbot_lab.tracking.journal import Journal

FIRST_PAUSE = 0.5  # seconds until the next attempt while the store is down
LONGEST_PAUSE = 30.0  # seconds; pauses double up to this


class Sender:
    """Sends a journal's entries in the background, again and again while the store is down."""

    def __init__(
        self, journal: Journal, sink: EntrySink, *, first_pause: float = FIRST_PAUSE
    ) -> None:
        self.refused = 0
        self._outage: str | None = None
        self._refusal: str | None = None
        self._journal = journal
        self._sink = sink
        self._first_pause = first_pause
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="tracking-sender", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str | None:
        """Why entries wait or were refused, None while all is well."""
        return self._outage or self._refusal

    def notify(self) -> None:
        """Say that the journal has grown."""
        with self._changed:
            self._changed.notify_all()

    def finish(self, wait_seconds: float) -> bool:
        """Whether everything has arrived, after at most `wait_seconds`; then sending stops."""
        self._hurry.set()
        with self._changed:
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._journal.is_delivered, wait_seconds)
            self._stopping = True
            self._changed.notify_all()
        self._hurry.set()
        if done:
            self._thread.join()
        return done

    def _work(self) -> None:
        pause = self._first_pause
        while self._wait_for_work():
            try:
                self._note(deliver_helping(self._journal, self._sink))
                pause = self._first_pause
            except StoreError as error:
                self._outage = str(error)
                hurried = self._hurry.wait(pause)
                self._hurry.clear()
                pause = self._first_pause if hurried else min(2 * pause, LONGEST_PAUSE)

    def _note(self, refusals: list[str]) -> None:
        self._outage = None
        if refusals:
            self.refused += len(refusals)
            self._refusal = refusals[-1]
        self.notify()

    def _wait_for_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or not self._journal.is_delivered)
            return not self._stopping
