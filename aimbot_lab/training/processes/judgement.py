"""What the ends of a training's processes mean for all of them, whoever started these.

Only a loss is mended by a new beginning: a signal, LostError's exit code, or a machine that is
gone. Any other error would be met again, so it ends the run. Once the process that leads has ended
well, the run has its end, whatever the others do.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from aimbot_lab.training.processes.place import LostError

MAX_RESTARTS = 3  # with no new checkpoint between
STOPPED = 130


class Ended(NamedTuple):
    """How a process of this or another machine ended."""

    rank: int
    code: int  # its exit code, negative for a signal
    cause: str  # in words, where it did not end well

    @property
    def was_lost(self) -> bool:
        """Whether all may begin again from a checkpoint after that."""
        return self.code < 0 or self.code == LostError.exit_code

    @property
    def well(self) -> bool:
        """Whether it did what it should."""
        return self.code in (0, STOPPED)

    @property
    def failed(self) -> bool:
        """Whether it met an error that it would meet again."""
        return not (self.well or self.was_lost)


class Verdict(NamedTuple):
    """What comes next: the end of the run with `code`, or, after a loss, a new beginning."""

    code: int | None
    loss: Ended | None = None
    error: str = ""  # of a process whose messages nobody has seen


def led_to(ends: Sequence[Ended]) -> int | None:
    """The exit code of the process that leads, if it ended well."""
    return next((one.code for one in ends if one.rank == 0 and one.well), None)


def judged(ends: Sequence[Ended], *, stopping: bool) -> Verdict:
    """What the ends of all processes mean; `stopping`: they were asked to."""
    if (code := led_to(ends)) is not None:
        return Verdict(code)
    failed = [one for one in ends if one.failed]
    lost = [one for one in ends if one.was_lost]
    if failed:
        first = min(failed)
        return Verdict(first.code, error=first.cause if first.rank else "")  # the leader said so
    if lost and not stopping:
        # A signal is the cause; that the others lost that process is its effect.
        return Verdict(None, loss=min(lost, key=lambda one: one.code))
    return Verdict(STOPPED)


class Restarts:
    """How often all may begin again: at most `MAX_RESTARTS` times with the same progress."""

    def __init__(self, progress: Callable[[], object]) -> None:
        self._progress = progress
        self._reached = progress()
        self._used = 0

    def after(self, loss: Ended) -> tuple[bool, str]:
        """Whether all begin again after `loss`, and the line that says so."""
        reached = self._progress()
        if reached != self._reached:
            self._reached, self._used = reached, 0
        if self._used == MAX_RESTARTS:
            return False, f"{loss.cause}; gave up after {MAX_RESTARTS} restarts"
        self._used += 1
        return True, f"{loss.cause}; all begin again (restart {self._used} of {MAX_RESTARTS})"
