"""Troubles that come and go: told in a line when they begin, and in one when they are over."""

import threading
from collections.abc import Callable
from contextlib import suppress

Tell = Callable[[str], None]


def silent(_text: str) -> None:
    """Tell nobody."""


def unfailing(tell: Tell) -> Tell:
    """`tell`, from which no error comes back: that nobody can listen stops nothing."""

    def told(text: str) -> None:
        with suppress(Exception):
            tell(text)

    return told


class Outage:
    """One thing that may fail for a while, however often and by how many threads it is tried."""

    def __init__(self, tell: Tell) -> None:
        self.reason: str | None = None  # why it fails now, None while it works
        self._tell = tell
        self._lock = threading.Lock()

    def begin(self, reason: str, *, consequence: str) -> None:
        """Note that it failed because of `reason`; told unless it failed before."""
        with self._lock:
            is_news = self.reason is None
            self.reason = reason
            if is_news:
                self._tell(f"{reason}; {consequence}")

    def end(self, relief: str) -> None:
        """Note that it works; `relief` is told if it failed before."""
        with self._lock:
            if self.reason is not None:
                self._tell(relief)
                self.reason = None
