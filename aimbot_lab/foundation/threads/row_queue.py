"""How threads share the rows of a batch, see `foundation.threads.spin_sync`.

Every thread has rows of its own, which stay in its core's cache. It takes them in small chunks,
and when none is left it goes on with the others', so that a thread that comes late or is held
up delays nobody.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.atomic import SyncFlags, add
from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.threads.spin_sync import SPIN_LIMIT, STRIDE

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
