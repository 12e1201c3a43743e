"""What the ends of a training's processes mean for all of them; free of Ray.

Only a loss is mended by a new beginning: a signal, LostError's exit code, or a machine that is
gone. Any other error would be met again, so it ends the run.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

MAX_RESTARTS = 3  # with no new checkpoint between
STOPPED = 130


class Ended(NamedTuple):
    """How a process ended."""

    rank: int
    code: int  # its exit code, negative for a signal
    was_lost: bool
    cause: str  # one line


class Verdict(NamedTuple):
    """What comes next: the end of the run with `code`, or, after a loss, a new beginning."""

    code: int | None
    loss: Ended | None = None
    error: str = ""  # of a process whose messages nobody has seen


def machine_lost(rank: int, address: str) -> Ended:
    """The end of a process whose machine, or the part of Ray that watches it, is gone."""
    return Ended(rank, -9, was_lost=True, cause=f"rank {rank} was lost with its place on {address}")


def judged(ends: Sequence[Ended], *, stopping: bool) -> Verdict:
    """What the ends of all processes mean; `stopping`: they were asked to."""
    failed = [one for one in ends if one.code not in (0, STOPPED) and not one.was_lost]
    lost = [one for one in ends if one.was_lost]
    if failed:
        first = failed[0]
        return Verdict(first.code, error=first.cause if first.rank else "")  # the leader said so
    if lost and not stopping:
        # A signal is the cause; that the others lost that process is its effect.
        return Verdict(None, loss=min(lost, key=lambda one: one.code))
    return Verdict(0 if all(one.code == 0 for one in ends) else STOPPED)


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
