"""One step of a batch as its threads share it."""

from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.atomic import SyncFlags
from aimbot_lab.foundation.kernels.packed import PackedCall
from aimbot_lab.foundation.threads.spin_sync import SPIN_LIMIT, STRIDE
from aimbot_lab.foundation.world import StepBuffers
from aimbot_lab.worlds.gorge.core.row_queue import ThreadWorkspace, WorkQueue
from aimbot_lab.worlds.gorge.core.state import GorgeTables


class StepTask(NamedTuple):
    """Steps the rows, begins the next episodes, or both, as its turns say.

    It knows two buffers, because callers use two by turns; `choose` says which comes next. It
    must not know the world: a worker may hold it while the world goes.
    """

    tables: GorgeTables
    buffers: tuple[StepBuffers, StepBuffers]
    queue: WorkQueue
    calls: tuple[PackedCall, ...]  # `advance_rows` as each thread calls it

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for more work."""
        self.calls[thread_id]()

    def choose(self, buffers: StepBuffers) -> bool:
        """Set the next step to write `buffers`; whether they are known."""
        for index, known in enumerate(self.buffers):
            if known is buffers:
                self.queue.buffers[0] = index
                return True
        return False

    def begin_work(self, duty: int) -> None:
        """Set the next work to `duty` on every row."""
        self.queue.duty[0] = duty
        self.queue.taken.fill(0)


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
