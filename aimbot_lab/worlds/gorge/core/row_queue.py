"""How threads share the rows of a batch, see `foundation.threads.spin_sync`.

Every thread has rows of its own, which stay in its core's cache. It takes them in chunks, and when
none is left it goes on with the others', so that a thread that is held up delays nobody.
"""

from typing import NamedTuple

from aimbot_lab.foundation.kernels.atomic import SyncFlags, add
from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.threads.spin_sync import STRIDE
from aimbot_lab.worlds.gorge.core.state import Ints

STEP, BEGIN = 1, 2  # bits of a duty
CHUNK = 64  # rows that a thread takes at a time, some 5 microseconds of work


class WorkQueue(NamedTuple):
    """What the threads of one batch tell each other."""

    sync_flags: SyncFlags  # [workers * STRIDE]
    taken: SyncFlags  # [threads * STRIDE] each first: how many rows of the thread's were taken
    duty: Ints  # [1] STEP, BEGIN or both
    buffers: Ints  # [1] which of the two buffers is written
    ended: Ints  # [threads * STRIDE] each first: episodes that the thread saw end in the last step


class ThreadWorkspace(NamedTuple):
    """What one thread works with."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up


@inlined
def take_rows(queue: WorkQueue, thread_id: int, rows: int) -> tuple[int, int]:
    """First and last row (exclusive) of the next chunk of all `rows` rows for thread `thread_id`.

    Its own rows come first, then the others'. They are equal where none is left.
    """
    threads = queue.taken.size // STRIDE
    for away in range(threads):
        owner = (thread_id + away) % threads
        end = rows * (owner + 1) // threads
        first = rows * owner // threads + add(queue.taken, owner * STRIDE, CHUNK)
        if first < end:
            return first, min(first + CHUNK, end)
    return rows, rows
