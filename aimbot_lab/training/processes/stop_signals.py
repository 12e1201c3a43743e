"""Requests to stop, as a launcher notes them for its workers."""

import signal
from types import FrameType, TracebackType

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StoppedAtOnceError(Exception):
    """The user asked to stop before the workers were there, or twice."""


class StopSignals:
    """Notes SIGINT, SIGTERM and SIGHUP while the block runs.

    A SIGHUP that is ignored stays so, as `nohup` asks for.
    """

    def __init__(self) -> None:
        self.number: int | None = None  # of the first one
        self.again = False
        self._before = {
            number: signal.getsignal(number)
            for number in NUMBERS
            if not (number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN)
        }

    def __enter__(self) -> "StopSignals":
        self.listen()
        return self

    def listen(self) -> None:
        """Take the signals; to be called again once a library has taken them."""
        for number in self._before:
            signal.signal(number, self._receive)

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number
        elif number != signal.SIGHUP:  # a closing terminal hangs up more than once
            self.again = True
