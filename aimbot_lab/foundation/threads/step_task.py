"""One step of a batch as its threads share it."""

from typing import Any, NamedTuple

from aimbot_lab.foundation.kernels.packed import PackedCall
from aimbot_lab.foundation.threads.row_queue import WorkQueue
from aimbot_lab.foundation.world import StepBuffers


class StepTask(NamedTuple):
    """Steps the rows, begins the next episodes, or both, as its turns say.

    It knows two buffers, because callers use two by turns; `choose` says which comes next. It
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
