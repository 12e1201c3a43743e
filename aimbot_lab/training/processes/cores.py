"""On which cores a process of several computes, and which of its threads waits for which.

Gloo reads its sockets in a thread of its own, which asks for a lock again and again while the
computing thread holds it. Where it interrupts that thread in the middle of a send, it spins until
the scheduler's next tick, 4 ms later with Linux's usual 250 Hz: longer than a minibatch takes. So
gloo's threads are SCHED_BATCH, which interrupt no other when they wake up, and each process keeps
to cores of its own, where gloo's threads run while the process waits.

All this is of Linux; elsewhere, and in containers that refuse such calls, everything works without.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import torch as th
from torch.distributed import Store  # type: ignore[attr-defined]
from torch.optim import Optimizer

from aimbot_lab.training.processes.exchange import Rank

BOOT = Path("/proc/sys/kernel/random/boot_id")
TOPOLOGY = Path("/sys/devices/system/cpu")
THREADS = Path("/proc/self/task")
DENORMAL = 5e-324
LEAST_EPSILON = 1e-10


class Cores(NamedTuple):
    """The cores that a process may use."""

    machine: str  # an id of its present boot; empty where cores can't be chosen
    physical: tuple[tuple[int, ...], ...]  # the numbers of each one's hardware threads

    @property
    def numbers(self) -> frozenset[int]:
        """Of all hardware threads."""
        return frozenset(number for core in self.physical for number in core)


class OwnCores:
    """A process's share of the cores of its machine, until it is given back."""

    def __init__(self, store: Store, place: Rank) -> None:
        self._usable = usable_cores()
        store.set(f"cores/{place.rank}", json.dumps(self._usable))
        published = [json.loads(store.get(f"cores/{rank}")) for rank in range(place.count)]
        everyones = [Cores(machine, tuple(map(tuple, physical))) for machine, physical in published]
        self._share = own_share(everyones, place.rank)
        if self._share is not None:
            _keep_to(self._share)

    def give_back(self) -> None:
        """Let threads that began meanwhile use all cores again, too."""
        share, self._share = self._share, None
        if share is None:
            return
        for thread in _threads():
            with suppress(OSError):  # it has just ended
                if share == os.sched_getaffinity(thread):
                    _keep_to(self._usable.numbers, thread)


def usable_cores() -> Cores:
    """Those of this process."""
    try:
        machine, numbers = BOOT.read_text().strip(), os.sched_getaffinity(0)
    except (AttributeError, OSError):
        return Cores("", ())
    ordered = groupby(sorted(numbers, key=_on_the_chip), _on_the_chip)
    return Cores(machine, tuple(tuple(sorted(threads)) for _, threads in ordered))


def own_share(everyones: Sequence[Cores], rank: int) -> frozenset[int] | None:
    """The cores of process `rank` alone; None where it keeps all that it may use.

    Processes that may use the same cores of a machine deal them out one by one, so that each gets
    of every kind, if they come out even: physical cores, or hardware threads where there is one
    for each. Where these differ, another program has assigned them.
    """
    own = everyones[rank]
    sharing = [other for other, cores in enumerate(everyones) if cores == own]
    place, count = sharing.index(rank), len(sharing)
    if count == 1 or not own.physical:
        return None
    if len(own.physical) % count == 0:
        return frozenset(number for core in own.physical[place::count] for number in core)
    if len(own.numbers) == count:
        return frozenset({sorted(own.numbers)[place]})
    return None


@contextmanager
def yielding_threads() -> Iterator[None]:
    """Threads that begin in the block interrupt no thread that computes."""
    if not _is_of_the_usual_policy():
        yield
        return
    _schedule(os.SCHED_BATCH)
    try:
        yield
    finally:
        _schedule(os.SCHED_OTHER)


def _is_of_the_usual_policy() -> bool:
    try:
        return os.sched_getscheduler(0) == os.SCHED_OTHER and hasattr(os, "SCHED_BATCH")
    except (AttributeError, OSError):
        return False


def _schedule(policy: int) -> None:
    with suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(0))


def _keep_to(numbers: Iterable[int], thread: int = 0) -> None:
    with suppress(OSError):
        os.sched_setaffinity(thread, numbers)


def _threads() -> list[int]:
    return [int(path.name) for path in THREADS.iterdir()]


def _on_the_chip(number: int) -> tuple[int, int]:
    """The package and the physical core of a hardware thread."""
    folder = TOPOLOGY / f"cpu{number}" / "topology"
    try:
        package, core = (
            int((folder / name).read_text()) for name in ("physical_package_id", "core_id")
        )
    except (OSError, ValueError):
        return -1, number
    return package, core


def one_thread() -> None:
    """Have torch work with one thread from now on."""
    th.set_num_threads(1)


@contextmanager
def one_torch_thread() -> Iterator[int]:
    """Have torch work with one thread; the number that it had before, and has again after."""
    threads = th.get_num_threads()
    try:
        th.set_num_threads(1)
        yield threads
    finally:
        th.set_num_threads(threads)


@contextmanager
def denormals_as_zero(optimizer: Optimizer) -> Iterator[None]:
    """Have this thread compute with 0 for denormal numbers, in float32 those below 1e-38.

    Processors take several times as long for them. The running means of `optimizer` get
    there, and stay there, where a gradient was something and is 0 from then on. Does nothing where
    the processor knows no such way, and for an optimizer that divides by next to nothing where the
    mean of squares is 0.
    """
    epsilons = [group.get("eps", 1.0) for group in optimizer.param_groups]
    if DENORMAL == 0.0 or min(epsilons) < LEAST_EPSILON:  # 0.0: it computes so already
        yield
        return
    try:
        th.set_flush_denormal(True)
        yield
    finally:
        th.set_flush_denormal(False)
