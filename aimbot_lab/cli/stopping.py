"""What a person does to a command that runs: Ctrl-C, SIGTERM and a closed terminal, and its keys.

Ctrl-C or SIGTERM once stops and saves, twice aborts; a closed terminal stops and saves.
"""

import os
import signal
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from aimbot_lab.foundation.errors import AbortedError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOPPING = "stopping after this minibatch and saving; again aborts"
STOPPING_TOGETHER = "stopping where the next rollout begins, and saving; again aborts"

LOCAL_FLAGS = 3  # place among the attributes of a terminal


class StopRequest:
    """Whether the user asked to stop; a training polls it after every step.

    `notice` is called with `stopping` for a request that is accepted. It is called in a signal
    handler, in the middle of anything, so it must neither wait nor use a buffered stream.
    """

    def __init__(self, notice: Callable[[str], None], stopping: str = STOPPING) -> None:
        self.requested = False
        self._polled = False
        self._notice, self._stopping = notice, stopping

    def __call__(self) -> bool:
        """Whether to stop now."""
        self._polled = True
        return self.requested

    def receive(self, number: int, _frame: FrameType | None = None) -> None:
        """Note the signal; abort where it is not polled yet or is the second one."""
        again, self.requested = self.requested, True
        if again and number == signal.SIGHUP:
            return  # a closing terminal hangs up more than once
        if again or not self._polled:
            raise KeyboardInterrupt
        self._notice(self._stopping)


@contextmanager
def stop_on_signals(
    notice: Callable[[str], None], stopping: str = STOPPING
) -> Iterator[StopRequest]:
    """A stop request that SIGINT, SIGTERM and SIGHUP set while the block runs.

    Raises AbortedError for an abort that the block leaves as KeyboardInterrupt: what opens a
    run reports its abort itself.
    """
    request = StopRequest(notice, stopping)
    with handled_signals(request.receive):
        try:
            yield request
        except KeyboardInterrupt as abort:
            raise AbortedError("stopped before a run was opened: no run was created") from abort


@contextmanager
def handled_signals(receive: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have `receive` called on SIGINT, SIGTERM and SIGHUP while the block runs.

    A SIGHUP that is ignored stays so: that is what `nohup` asks for. An ignored SIGINT does not:
    shells ignore it for a script's background jobs, and `kill -INT` must stop those too.
    """
    numbers = [number for number in SIGNALS if not _is_under_nohup(number)]
    before = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_under_nohup(number: signal.Signals) -> bool:
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN


@contextmanager
def quiet_keys(descriptor: int) -> Iterator[None]:
    """Keep the terminal at `descriptor` from showing ^C and dropping output while the block runs.

    Both would spoil what is drawn there. Does nothing where this process is not in the
    terminal's foreground: the keys are not meant for it, and it would be halted for trying.
    """
    if not _is_in_foreground(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    quiet = [*before]
    quiet[LOCAL_FLAGS] = before[LOCAL_FLAGS] & ~termios.ECHOCTL | termios.NOFLSH
    try:
        termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
        yield
    finally:
        # The terminal may have been closed, or the process been sent to the background.
        if _is_in_foreground(descriptor):
            with suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _is_in_foreground(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
