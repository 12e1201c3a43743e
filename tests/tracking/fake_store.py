"""A store and a disk that fail when a test says so."""

import threading
from pathlib import Path

import pytest

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking import journal
from aimbot_lab.tracking.data_folder import StoreRefusedError
from aimbot_lab.tracking.journal import MetricsEntry


class FakeStore:
    """A store that fails `outages` times, refuses some steps, and remembers the rest."""

    def __init__(self, outages=0, refused_steps=()):
        self.outages = outages
        self.refused_steps = set(refused_steps)
        self.received = []
        self.threads = set()
        self.asked = threading.Event()
        self.open = threading.Event()
        self.open.set()

    def send(self, entries):
        self.threads.add(threading.get_ident())
        self.asked.set()
        assert self.open.wait(300), "nobody opened the store"
        if self.outages:
            self.outages -= 1
            raise StoreError("the store is down")
        if self.refused_steps & {e.step for e in entries if isinstance(e, MetricsEntry)}:
            raise StoreRefusedError("this step is refused")
        self.received += entries

    @property
    def steps(self):
        return [entry.step for entry in self.received if isinstance(entry, MetricsEntry)]


class FullDisk:
    """A disk without room while `full`; once `reserve` is deleted there is room again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, reserve=None):
        self.full = False
        self._reserve = reserve
        for name in ("append_whole", "sync_file"):
            monkeypatch.setattr(journal, name, self._guarded(getattr(journal, name)))

    def _guarded(self, real):
        def call(*arguments):
            has_room = self._reserve is not None and not self._reserve.exists()
            asks_no_room = isinstance(arguments[0], Path) and arguments[0].is_dir()
            if self.full and not (has_room or asks_no_room):
                raise OSError(28, "No space left on device")
            return real(*arguments)

        return call
