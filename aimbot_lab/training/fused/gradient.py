"""The gradient of a minibatch, in pieces that fit the cache, on one or more threads."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.threads.thread_pool import ThreadPool
from aimbot_lab.training.fused.core.learn import PIECES, USED_LANES, learn_lanes
from aimbot_lab.training.fused.core.parts import (
    SUMS,
    Batch,
    Doubles,
    Floats,
    Lanes,
    Loss,
    Networks,
    ThreadWorkspace,
    WorkQueue,
)
from aimbot_lab.training.fused.weights import NetShape, net_size
from aimbot_lab.training.fused.workspace import new_queue, new_thread_workspaces

Indices = npt.NDArray[np.int64]
PIECE = 256  # samples: their way through the networks fits the cache of one core
MAX_LANES = 16


class LearnTask(NamedTuple):
    """Sums the gradients of a minibatch's pieces, all of one size."""

    networks: Networks
    batch: Batch
    lanes: Lanes
    queue: WorkQueue
    thread_workspaces: tuple[ThreadWorkspace, ...]

    @property
    def piece(self) -> int:
        """Samples of a piece."""
        return len(self.thread_workspaces[0].workspace.ones)

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for the next minibatch."""
        learn_lanes(*self[:4], self.thread_workspaces[thread_id])

    def begin_minibatch(self, indices: Indices, loss: Loss) -> int:
        """Set the next work to the samples `indices`, full pieces; how many lanes it fills."""
        self.batch.indices[: len(indices)] = indices
        self.batch.loss[:] = loss
        pieces = len(indices) // self.piece
        numbers, lanes = self.queue.numbers, min(pieces, len(self.lanes.sums))
        numbers[USED_LANES], numbers[PIECES] = lanes, pieces
        self.queue.taken[0] = 0
        return lanes


class FusedGradient:
    """Derivatives of PPO's loss by all weights.

    Which piece is added to which lane, and in which order, does not depend on the number of
    threads, nor does the result.
    """

    def __init__(self, shape: NetShape, networks: Networks) -> None:
        self._shape, self._networks = shape, networks
        lanes = MAX_LANES + 1  # the last one for what fills no piece
        self._lanes = Lanes(np.zeros((lanes, net_size(shape)), np.float32), np.zeros((lanes, SUMS)))
        self._workers, self._nobody = ThreadPool(1), ThreadPool(1)
        self._even: LearnTask | None = None  # for full pieces
        self._rest: LearnTask | None = None  # for a smaller one

    def join(self, workers: ThreadPool) -> None:
        """From now on work with `workers`."""
        self._workers, self._even = workers, None

    def of(self, rows: Floats, indices: Indices, loss: Loss) -> tuple[Floats, Doubles]:
        """(gradient [P], sums of the losses [6]) over the samples `indices` of `rows` [S, W]."""
        even = len(indices) - len(indices) % PIECE
        lanes = 0
        if even:
            task = self._even = self._fitting(self._even, rows, PIECE)
            lanes = task.begin_minibatch(indices[:even], loss)
            self._workers.run(task)
        if even < len(indices):
            task = self._rest = self._fitting(self._rest, rows, len(indices) - even)
            task.begin_minibatch(indices[even:], loss)
            self._nobody.run(task)
        return sum_of_lanes(self._lanes, lanes, rest=even < len(indices))

    def _fitting(self, task: LearnTask | None, rows: Floats, count: int) -> LearnTask:
        """`task` where it is for samples of `rows` and pieces of so many, or a new one."""
        if task is not None and task.batch.rows is rows and task.piece == count:
            return task
        whole = count == PIECE
        part = slice(MAX_LANES) if whole else slice(MAX_LANES, None)
        sync_flags = (self._workers if whole else self._nobody).sync_flags
        loss = np.zeros(len(Loss._fields), np.float32)
        return LearnTask(
            networks=self._networks,
            batch=Batch(rows, np.zeros(len(rows) + count, np.int64), loss),
            lanes=Lanes(self._lanes.gradients[part], self._lanes.sums[part]),
            queue=new_queue(sync_flags),
            thread_workspaces=new_thread_workspaces(self._shape, count, sync_flags),
        )


def sum_of_lanes(found: Lanes, used: int, *, rest: bool) -> tuple[Floats, Doubles]:
    """(gradient [P], sums of the losses [6]) over so many lanes, with `rest` over the last too."""
    # Of a policy that diverges its weights will tell, after the update.
    with np.errstate(over="ignore", invalid="ignore"):
        gradient, sums = (array[:used].sum(axis=0) for array in found)
        if rest:
            gradient += found.gradients[MAX_LANES]
            sums += found.sums[MAX_LANES]
        return gradient, sums
