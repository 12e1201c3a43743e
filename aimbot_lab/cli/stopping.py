"""How signals stop a command, and processes that end with the one that started them.

Ctrl-C or SIGTERM once stops and saves, twice aborts; a closed terminal stops and saves.

`python -m aimbot_lab.cli.stopping COMMAND...` runs COMMAND, and ends the whole group once its
standard input is closed: the starter holds the other end and never writes, and the kernel closes it
even after `kill -9`.

`python -m aimbot_lab.cli.stopping --lab run FILE ...` is `aimbot-lab run FILE ...`, which then
gets SIGTERM: a training stops and saves, and nothing is killed later.
"""

import os
import runpy
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
def no_interrupt_lost() -> Iterator[None]:
    """Raise KeyboardInterrupt where the block fails after one was raised in a callback of C.

    Python prints such an exception and goes on, and the caller fails for lack of what the callback
    had to do: a compiler, for one, which is in C for most of its time.
    """
    lost, usual = [], sys.unraisablehook

    def keep(found: "sys.UnraisableHookArgs") -> None:
        if isinstance(found.exc_value, KeyboardInterrupt):
            lost.append(True)
        else:
            usual(found)

    sys.unraisablehook = keep
    try:
        yield
    except AbortedError:  # it says what became of the work
        raise
    except Exception as error:
        if lost:
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = usual


@contextmanager
def handled_signals(receive: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have `receive` called on SIGINT, SIGTERM and SIGHUP while the block runs.

    A SIGHUP that is ignored stays so: that is what `nohup` asks for. An ignored SIGINT does not:
    shells ignore it for a script's background jobs, and `kill -INT` must stop those too.
    """
    under_nohup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    numbers = [number for number in SIGNALS if number != signal.SIGHUP or not under_nohup]
    before = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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


SECONDS_TO_END = 5.0  # between the asking and the killing
LAB = "--lab"


def tied(arguments: Sequence[str]) -> list[str]:
    """What runs `arguments` tied to the end of its standard input; it leads a group of its own."""
    return [sys.executable, "-P", "-m", "aimbot_lab.cli.stopping", *arguments]


def tied_lab(words: Sequence[str]) -> list[str]:
    """What runs `aimbot-lab` with `words`, tied to the end of its standard input."""
    return [sys.executable, "-m", "aimbot_lab.cli.stopping", LAB, *words]


def main() -> int:
    """The exit code of the command in `sys.argv`."""
    if sys.argv[1:2] == [LAB]:
        del sys.argv[1]
        _at_the_end_of_stdin(lambda: os.kill(os.getpid(), signal.SIGTERM))
        runpy.run_module("aimbot_lab", run_name="__main__", alter_sys=True)  # which exits
    # Not ignored, which the command would inherit: who ends the group waits for all of it.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    _at_the_end_of_stdin(_end_group)
    code = subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL)
    return code if code >= 0 else 128 - code


def _at_the_end_of_stdin(end: Callable[[], None]) -> None:
    """Call `end`, in a thread, once the starter is gone."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        end()

    threading.Thread(target=watch, daemon=True).start()


def _end_group() -> None:
    os.killpg(0, signal.SIGTERM)
    time.sleep(SECONDS_TO_END)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
