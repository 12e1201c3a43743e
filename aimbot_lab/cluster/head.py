"""Whether the head of a cluster of Ray still answers.

Ray itself ends our process, with a page of its own, where its head is silent for a minute.
"""

import socket
import time
from collections.abc import Callable
from contextlib import suppress

from aimbot_lab.cluster.connection import HeadLostError

SECONDS_BETWEEN_LOOKS = 2.0
PATIENCE = 20.0  # s


class Head:
    """The head at HOST:PORT; where no address is known, it never counts as gone."""

    def __init__(self, address: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.address, self._clock = address, clock
        self._looked = self._answered = clock()

    @property
    def is_gone(self) -> bool:
        """Whether nobody has listened there for `PATIENCE`."""
        now = self._clock()
        if self.address and now - self._looked >= SECONDS_BETWEEN_LOOKS:
            self._looked = now
            if _answers(self.address):
                self._answered = now
        return self._looked - self._answered >= PATIENCE

    def check(self) -> None:
        """Raise HeadLostError if it is gone."""
        if self.is_gone:
            raise HeadLostError(
                f"Ray's head at {self.address} is gone; aimbot-lab resume goes on from the newest "
                "checkpoint"
            )


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with suppress(OSError):
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_BETWEEN_LOOKS).close()
        return True
    return False
