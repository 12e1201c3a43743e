"""How threads share work again and again without the interpreter.

Waking a thread that sleeps takes as long as a small batch's step: a worker that has found nothing
left to do looks out for the next turn for a while before it goes to sleep, and the caller never
waits for a worker that has not begun. Whoever looks out gives way to others that want its core,
so that the workers of a world and those of learning, which have their turns one after the other,
can share one. Each worker has a word, in a cache line of its own, and who may change it:

    ASLEEP -> POSTED   the caller, who then wakes the worker
    DONE -> POSTED     the caller; the worker sees it, or is being woken
    POSTED -> DONE     the caller, who has done all the work alone
    DONE -> LEAVING    the caller, who wants the worker out of its kernel
    POSTED -> WORKING -> DONE               the worker
    DONE -> ASLEEP, LEAVING -> ASLEEP       the worker, which leaves its kernel
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.atomic import SyncFlags, add, load, store, swap, yield_core
from aimbot_lab.foundation.kernels.jit import inlined, kernel

ASLEEP, POSTED, WORKING, DONE, LEAVING = range(5)
STRIDE = 8  # flags of 8 bytes in a cache line
SPIN_LIMIT = 200_000  # before a thread gives up: a millisecond or two, longer than a policy takes
SPINS_PER_YIELD = 64  # before it gives way


@kernel
def post(sync_flags: SyncFlags) -> int:
    """Tell every worker that there is work; bit k is set where worker k must be woken for it."""
    asleep = 0
    for worker in range(sync_flags.size // STRIDE):
        if not swap(sync_flags, worker * STRIDE, DONE, POSTED):
            store(sync_flags, worker * STRIDE, POSTED)
            asleep |= 1 << worker
    return asleep


@kernel
def call_out(sync_flags: SyncFlags) -> None:
    """Ask the workers that look out to leave their kernels."""
    for worker in range(sync_flags.size // STRIDE):
        swap(sync_flags, worker * STRIDE, DONE, LEAVING)


@kernel
def is_asleep(sync_flags: SyncFlags, worker: int) -> bool:
    """Whether `worker` has left its kernel."""
    return load(sync_flags, worker * STRIDE) == ASLEEP


@kernel
def fall_asleep(sync_flags: SyncFlags, worker: int) -> None:
    """Say that `worker` has left its kernel."""
    store(sync_flags, worker * STRIDE, ASLEEP)


@kernel
def is_at_work(sync_flags: SyncFlags, worker: int) -> bool:
    """Whether `worker` is at work; one that has not begun is not to begin any more."""
    swap(sync_flags, worker * STRIDE, POSTED, DONE)
    return load(sync_flags, worker * STRIDE) == WORKING


@inlined
def begins(sync_flags: SyncFlags, worker: int, spin_limit: int) -> bool:
    """Spin for work at most `spin_limit` times; whether `worker` is now at work, else asleep."""
    for look in range(spin_limit):
        word = load(sync_flags, worker * STRIDE)
        if word == POSTED and swap(sync_flags, worker * STRIDE, POSTED, WORKING):
            return True
        if word == LEAVING:
            break
        if look % SPINS_PER_YIELD == 0:
            yield_core()
    while not swap(sync_flags, worker * STRIDE, DONE, ASLEEP):
        if swap(sync_flags, worker * STRIDE, LEAVING, ASLEEP):
            return False
        if swap(sync_flags, worker * STRIDE, POSTED, WORKING):
            return True
    return False


@inlined
def finish(sync_flags: SyncFlags, worker: int) -> None:
    """Say that `worker` has done its work."""
    store(sync_flags, worker * STRIDE, DONE)


@inlined
def wait_for_workers(sync_flags: SyncFlags, spin_limit: int) -> None:
    """Wait until no worker is at work, for at most `spin_limit` checks of each."""
    for worker in range(sync_flags.size // STRIDE):
        swap(sync_flags, worker * STRIDE, POSTED, DONE)
        for look in range(spin_limit):
            if load(sync_flags, worker * STRIDE) != WORKING:
                break
            if look % SPINS_PER_YIELD == 0:
                yield_core()


Ints = npt.NDArray[np.int64]

STEP, BEGIN = 1, 2  # bits of a duty


class WorkQueue(NamedTuple):
    """What the threads of one batch tell each other."""

    sync_flags: SyncFlags  # [workers * STRIDE]
    taken: SyncFlags  # [threads * STRIDE] each first: how many rows of the thread's were taken
    duty: Ints  # [1] STEP, BEGIN or both
    buffers: Ints  # [1] which of the two buffers is written
    ended: Ints  # [threads * STRIDE] each first: episodes that the thread saw end in the last step


class ThreadWorkspace(NamedTuple):
    """What one thread works with, where its kernels need no arrays of its own."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up


def new_workspaces(count: int) -> tuple[ThreadWorkspace, ...]:
    """Places of `count` threads."""
    return tuple(ThreadWorkspace(number, SPIN_LIMIT) for number in range(count))


def new_queue(sync_flags: SyncFlags, *, threads: int) -> WorkQueue:
    """What `threads` threads tell each other, before the first step."""
    return WorkQueue(
        sync_flags=sync_flags,
        taken=np.zeros(threads * STRIDE, np.int64),
        duty=np.zeros(1, np.int64),
        buffers=np.zeros(1, np.int64),
        ended=np.zeros(threads * STRIDE, np.int64),
    )


@inlined
def take_rows(queue: WorkQueue, thread_id: int, rows: int, chunk: int) -> tuple[int, int]:
    """First and last row (exclusive) of the next `chunk` of all `rows` rows for thread `thread_id`.

    Its own rows come first, then the others'. They are equal where none is left.
    """
    threads = queue.taken.size // STRIDE
    for away in range(threads):
        owner = (thread_id + away) % threads
        end = rows * (owner + 1) // threads
        first = rows * owner // threads + add(queue.taken, owner * STRIDE, chunk)
        if first < end:
            return first, min(first + chunk, end)
    return rows, rows
