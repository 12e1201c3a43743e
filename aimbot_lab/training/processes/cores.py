"""On which cores a process of several computes, and which of its threads waits for which.

Gloo reads its sockets in threads of its own, which ask for a lock again and again while the
computing thread holds it. Where one of them interrupts that thread in the middle of a send, it
spins until the scheduler's next tick, 4 ms later with Linux's usual 250 Hz: longer than a minibatch
takes. So they begin as SCHED_BATCH, whose threads interrupt no other when they wake up, and each
process keeps to cores of its own, where they run while the process waits.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

BOOT = Path("/proc/sys/kernel/random/boot_id")
TOPOLOGY = Path("/sys/devices/system/cpu")


class Cores(NamedTuple):
    """The cores that a process may use, neighbours on the chip side by side."""

    machine: str  # an id of its present boot; empty where cores can't be chosen
    numbers: tuple[int, ...]


def usable_cores() -> Cores:
    """Those of this process."""
    try:
        machine, numbers = BOOT.read_text().strip(), os.sched_getaffinity(0)
    except (AttributeError, OSError):  # no Linux
        return Cores("", ())
    return Cores(machine, tuple(sorted(numbers, key=_on_the_chip)))


def own_share(everyones: Sequence[Cores], rank: int) -> frozenset[int] | None:
    """The cores of process `rank` alone, where those of its machine come out even.

    Processes share out what they may all use, in equal parts; who may use other cores than they is
    on another machine or has been given its own. None where a process would get no whole part.
    """
    own = everyones[rank]
    sharing = [other for other, cores in enumerate(everyones) if cores == own]
    size, rest = divmod(len(own.numbers), len(sharing))
    if rest or not size:
        return None
    begin = size * sharing.index(rank)
    return frozenset(own.numbers[begin : begin + size])


@contextmanager
def yielding_threads() -> Iterator[None]:
    """Threads that begin in the block interrupt no thread that computes (on Linux)."""
    usual = getattr(os, "SCHED_OTHER", None)
    if usual is None or os.sched_getscheduler(0) != usual:
        yield
        return
    _schedule(os.SCHED_BATCH)
    try:
        yield
    finally:
        _schedule(usual)


def keep_to(cores: Iterable[int]) -> None:
    """Have this thread, and those that it begins from now on, run on `cores` alone."""
    with suppress(OSError):  # some containers refuse it; all works without, only slower
        os.sched_setaffinity(0, cores)


def _schedule(policy: int) -> None:
    with suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(0))


def _on_the_chip(core: int) -> tuple[int, int, int]:
    """By package, then by physical core, whose hardware threads come side by side."""
    folder = TOPOLOGY / f"cpu{core}" / "topology"
    try:
        package, physical = (
            int((folder / name).read_text()) for name in ("physical_package_id", "core_id")
        )
    except (OSError, ValueError):
        return 0, core, core
    return package, physical, core
