"""Outages: logged in one line when they begin, and in one when they end."""

import threading
from collections.abc import Callable
from contextlib import suppress

Notify = Callable[[str], None]


def silent(_text: str) -> None:
    """Report to nobody."""


def never_raising(notify: Notify) -> Notify:
    """`notify` without its errors: a listener that fails stops nothing."""

    def guarded(text: str) -> None:
        with suppress(Exception):
            notify(text)

    return guarded


class Outage:
    """One thing that may fail for a while, however often and by how many threads it is tried."""

    def __init__(self, notify: Notify) -> None:
        self.reason: str | None = None  # why it fails now, None while it works
        self._notify = notify
        self._lock = threading.Lock()

    def begin(self, reason: str, *, consequence: str) -> None:
        """Note that it failed because of `reason`; reported unless it failed before."""
        with self._lock:
            is_news = self.reason is None
            self.reason = reason
            if is_news:
                self._notify(f"{reason}; {consequence}")

    def end(self, relief: str) -> None:
        """Note that it works; `relief` is reported if it failed before."""
        with self._lock:
            if self.reason is not None:
                self._notify(relief)
                self.reason = None
