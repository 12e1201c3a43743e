"""A program that sends as many bytes as a build does, and reads nothing of the answers.

It is what gRPC itself costs. Run as `python -m aimbot_lab.bench.bridge.echo PORT BYTES`.
"""

import sys
from typing import Any, cast

from aimbot_lab.mlagents.grpc_link import play

WAIT = 60.0  # seconds for the trainer to listen
STOP = b"stop"


class Echo:
    """A session without content."""

    def __init__(self, size: int) -> None:
        self._message = bytes(size)

    def begin(self) -> bytes:
        """The first message."""
        return self._message

    def answer(self, data: bytes) -> bytes | None:
        """The next message, which is the same; None: it was told to stop."""
        return None if data == STOP else self._message

    def end(self) -> bytes:
        """The last message."""
        return self._message


if __name__ == "__main__":
    play(cast(Any, Echo(int(sys.argv[2]))), int(sys.argv[1]), wait_s=WAIT)
