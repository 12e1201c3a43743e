"""The gradient of a minibatch of chunks, in pieces of whole chunks."""

from typing import NamedTuple

import numpy as np
import torch as th

from aimbot_lab.foundation.kernels.thread_pool import ThreadPool
from aimbot_lab.training.fused.core.learn import PIECES, USED_LANES
from aimbot_lab.training.fused.core.parts import Doubles, Floats, Lanes, Loss, Whole, WorkQueue
from aimbot_lab.training.fused.lanes import deal, new_lanes, of_shards
from aimbot_lab.training.fused.parts.core.arrays import ChunkBatch, PartsNetworks, PartsThread
from aimbot_lab.training.fused.parts.core.learn_chunks import learn_chunk_lanes
from aimbot_lab.training.fused.parts.net import parts_size
from aimbot_lab.training.fused.parts.shape import PartsShape
from aimbot_lab.training.fused.parts.workspace import new_parts_threads
from aimbot_lab.training.fused.workspace import new_queue

PIECE = 256  # samples of a piece, in whole chunks
UNITS_PIECE = 64  # of a network that encodes units, each of which takes as much of the cache
REMEMBERED_PIECE = 128  # of one that has a memory, too, whose steps need rows


class Sequences(NamedTuple):
    """A rollout of T steps of B rows."""

    rows: Floats  # [T B, W] its samples, step by step
    starts: Floats  # [T, B] 1 where an episode begins
    states: Floats  # [T / L, B, S, H] where each chunk begins


class LearnChunksTask(NamedTuple):
    """Sums the gradients of a minibatch's pieces, all of as many chunks."""

    whole: PartsNetworks
    batch: ChunkBatch
    lanes: Lanes
    queue: WorkQueue
    threads: tuple[PartsThread, ...]

    @property
    def piece(self) -> int:
        """Chunks of a piece."""
        return len(self.threads[0].workspace.carried)

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for the next minibatch."""
        learn_chunk_lanes(*self[:4], self.threads[thread_id])

    def fits(self, sequences: Sequences, piece: int, lanes: int) -> bool:
        """Whether it is for chunks of `sequences`, pieces of so many, and so many lanes."""
        same = self.batch.rows is sequences.rows and self.batch.states is sequences.states
        return same and self.piece == piece and len(self.lanes.sums) == lanes

    def begin_minibatch(self, chunks: Whole, loss: Loss) -> None:
        """Set the next work to `chunks`, full pieces in the order of the lanes."""
        self.batch.chunks[: len(chunks)] = chunks
        self.batch.loss[:] = loss
        numbers = self.queue.numbers
        numbers[USED_LANES], numbers[PIECES] = len(self.lanes.sums), len(chunks) // self.piece
        self.queue.taken[0] = 0


class ChunkGradient:
    """What `FusedGradient` does, with chunks in place of samples."""

    def __init__(self, shape: PartsShape, whole: PartsNetworks) -> None:
        self._shape, self._whole = shape, whole
        of_units = REMEMBERED_PIECE if shape.memories else UNITS_PIECE
        self._samples = of_units if shape.kinds else PIECE
        self._workers = ThreadPool(1)
        self._full: LearnChunksTask | None = None
        self._rest: LearnChunksTask | None = None
        self._sequences: Sequences | None = None

    def join(self, workers: ThreadPool) -> None:
        """From now on work with `workers`."""
        self._workers, self._full, self._rest = workers, None, None

    def sequences_of(self, rows: Floats, starts: Floats, states: list[th.Tensor]) -> Sequences:
        """A rollout's `rows` [T B, W], `starts` [T, B] and kept `states`, each [B, S, units].

        Without a memory there are no states.
        """
        made, units = self._sequences, self._shape.size
        if made is None or made.rows is not rows or made.starts.shape != starts.shape:
            places = max(1, len(starts) // self._shape.length)
            size = places, starts.shape[1], self._shape.states, self._shape.lanes
            made = Sequences(rows, np.zeros(starts.shape, np.float32), np.zeros(size, np.float32))
            self._sequences = made
        made.starts[...] = starts
        for place, state in enumerate(states):
            made.states[place, :, :, :units] = state.numpy()
        return made

    def of(
        self, sequences: Sequences, asked: Whole, loss: Loss, *, shards: int
    ) -> tuple[Floats, Doubles]:
        """(gradients [S, P], sums of the losses [S, 6]) over all samples of chunks `asked` [S, M].

        See `FusedGradient.of`.
        """
        piece, here = max(1, self._samples // self._shape.length), len(asked)
        cut, full, rest = deal(asked.shape[1], piece=piece, shards=shards), None, None
        if cut.pieces:
            task = self._full = self._fitting(self._full, sequences, piece, cut.lanes * here)
            full = self._done(task, cut.full(asked), loss)
        if cut.rest:
            task = self._rest = self._fitting(self._rest, sequences, cut.rest, here)
            rest = self._done(task, cut.left(asked), loss)
        return of_shards(full, rest, here)

    def _done(self, task: LearnChunksTask, chunks: Whole, loss: Loss) -> Lanes:
        task.begin_minibatch(chunks, loss)
        self._workers.run(task)
        return task.lanes

    def _fitting(
        self, task: LearnChunksTask | None, sequences: Sequences, piece: int, lanes: int
    ) -> LearnChunksTask:
        """`task` where it fits, or a new one."""
        if task is not None and task.fits(sequences, piece, lanes):
            return task
        sync_flags = self._workers.sync_flags
        most = sequences.states.shape[0] * sequences.states.shape[1] + piece
        loss = np.zeros(len(Loss._fields), np.float32)
        length = len(sequences.starts) // len(sequences.states)
        return LearnChunksTask(
            whole=self._whole,
            batch=ChunkBatch(*sequences, np.zeros(most, np.int64), loss, self._shape.warm_up),
            lanes=new_lanes(lanes, parts_size(self._shape)),
            queue=new_queue(sync_flags),
            threads=new_parts_threads(self._shape, piece, sync_flags, length=length),
        )
