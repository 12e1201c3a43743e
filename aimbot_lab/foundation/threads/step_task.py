"""One step of a batch as its threads share it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from aimbot_lab.foundation.kernels.packed import PackedCall
from aimbot_lab.foundation.threads.row_queue import WorkQueue
from aimbot_lab.foundation.world import StepBuffers


class StepTask(NamedTuple):
    """Steps the rows, begins the next episodes, or both, as its turns say.

    It knows two buffers, because callers use two by turns; `fits` says which comes next. It
    must not know the world: a worker may hold it while the world goes. `tables` are the
    world's own, by which it knows whether the task still fits.
    """

    tables: Any
    buffers: tuple[StepBuffers, StepBuffers]
    queue: WorkQueue
    calls: tuple[PackedCall, ...]  # the world's kernel as each thread calls it

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for more work."""
        self.calls[thread_id]()

    def fits(self, tables: Any, buffers: StepBuffers) -> bool:
        """Set the next step to write `buffers`; False where they or the tables are others."""
        if tables is not self.tables:
            return False
        for index, known in enumerate(self.buffers):
            if known is buffers:
                self.queue.buffers[0] = index
                return True
        return False

    def begin_work(self, duty: int) -> None:
        """Set the next work to `duty` on every row."""
        self.queue.duty[0] = duty
        self.queue.taken.fill(0)


Calls = Callable[[tuple[StepBuffers, StepBuffers]], tuple[PackedCall, ...]]
"""What each thread calls to write such a pair of buffers."""


def next_task(
    last: StepTask | None, tables: Any, buffers: StepBuffers, *, queue: WorkQueue, calls: Calls
) -> StepTask:
    """What steps into `buffers` and those that the `last` task wrote."""
    pair = buffers, buffers if last is None else last.buffers[queue.buffers[0]]
    queue.buffers[0] = 0
    return StepTask(tables, buffers=pair, queue=queue, calls=calls(pair))
