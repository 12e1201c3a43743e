"""The gradient of a minibatch, in pieces that fit the cache, on one or more threads."""

from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.thread_pool import ThreadPool
from aimbot_lab.training.fused.core.learn import PIECES, USED_LANES, learn_lanes
from aimbot_lab.training.fused.core.parts import (
    Batch,
    Doubles,
    Floats,
    Lanes,
    Loss,
    Networks,
    ThreadWorkspace,
    Whole,
    WorkQueue,
)
from aimbot_lab.training.fused.lanes import deal, new_lanes, of_shards
from aimbot_lab.training.fused.weights import NetShape, net_size
from aimbot_lab.training.fused.workspace import new_queue, new_thread_workspaces

PIECE = 256  # samples: their way through the networks fits the cache of one core


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

    def fits(self, rows: Floats, piece: int, lanes: int) -> bool:
        """Whether it is for samples of `rows`, pieces of so many, and so many lanes."""
        return self.batch.rows is rows and self.piece == piece and len(self.lanes.sums) == lanes

    def begin_minibatch(self, indices: Whole, loss: Loss) -> None:
        """Set the next work to the samples `indices`, full pieces in the order of the lanes."""
        self.batch.indices[: len(indices)] = indices
        self.batch.loss[:] = loss
        numbers = self.queue.numbers
        numbers[USED_LANES], numbers[PIECES] = len(self.lanes.sums), len(indices) // self.piece
        self.queue.taken[0] = 0


class FusedGradient:
    """Derivatives of PPO's loss by all weights, shard by shard.

    Which piece is added to which lane, and in which order, does not depend on the number of
    threads, nor on the shards that are computed elsewhere; so the result does not either.
    """

    def __init__(self, shape: NetShape, networks: Networks) -> None:
        self._shape, self._networks = shape, networks
        self._workers = ThreadPool(1)
        self._full: LearnTask | None = None  # for full pieces
        self._rest: LearnTask | None = None  # for smaller ones

    def join(self, workers: ThreadPool) -> None:
        """From now on work with `workers`."""
        self._workers, self._full, self._rest = workers, None, None

    def of(self, rows: Floats, asked: Whole, loss: Loss, *, shards: int) -> tuple[Floats, Doubles]:
        """(gradients [S, P], sums of the losses [S, 6]) over samples `asked` [S, M] of `rows`.

        S are the shards here, of so many `shards` of the training. What is returned is overwritten
        by the next call.
        """
        here, cut = len(asked), deal(asked.shape[1], piece=PIECE, shards=shards)
        full = rest = None
        if cut.pieces:
            task = self._full = self._fitting(self._full, rows, PIECE, cut.lanes * here)
            full = self._done(task, cut.full(asked), loss)
        if cut.rest:
            task = self._rest = self._fitting(self._rest, rows, cut.rest, here)
            rest = self._done(task, cut.left(asked), loss)
        return of_shards(full, rest, here)

    def _done(self, task: LearnTask, indices: Whole, loss: Loss) -> Lanes:
        task.begin_minibatch(indices, loss)
        self._workers.run(task)
        return task.lanes

    def _fitting(self, task: LearnTask | None, rows: Floats, piece: int, lanes: int) -> LearnTask:
        """`task` where it fits, or a new one."""
        if task is not None and task.fits(rows, piece, lanes):
            return task
        sync_flags = self._workers.sync_flags
        loss = np.zeros(len(Loss._fields), np.float32)
        return LearnTask(
            networks=self._networks,
            batch=Batch(rows, np.zeros(len(rows) + piece, np.int64), loss),
            lanes=new_lanes(lanes, net_size(self._shape)),
            queue=new_queue(sync_flags),
            thread_workspaces=new_thread_workspaces(self._shape, piece, sync_flags),
        )
