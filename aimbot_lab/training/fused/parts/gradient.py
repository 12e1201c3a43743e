"""The gradient of a minibatch of chunks, in pieces of whole chunks."""

from typing import NamedTuple

import numpy as np
import torch as th

from aimbot_lab.foundation.threads.thread_pool import ThreadPool
from aimbot_lab.training.fused.core.learn import PIECES, USED_LANES
from aimbot_lab.training.fused.core.parts import SUMS, Doubles, Floats, Lanes, Loss, WorkQueue
from aimbot_lab.training.fused.gradient import MAX_LANES, Indices, sum_of_lanes
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

    def fits(self, sequences: Sequences, count: int) -> bool:
        """Whether it is for chunks of `sequences` and pieces of so many."""
        same = self.batch.rows is sequences.rows and self.batch.states is sequences.states
        return same and self.piece == count

    def begin_minibatch(self, chunks: Indices, loss: Loss) -> int:
        """Set the next work to `chunks`, full pieces; how many lanes it fills."""
        self.batch.chunks[: len(chunks)] = chunks
        self.batch.loss[:] = loss
        pieces = len(chunks) // self.piece
        lanes = min(pieces, len(self.lanes.sums))
        self.queue.numbers[USED_LANES], self.queue.numbers[PIECES] = lanes, pieces
        self.queue.taken[0] = 0
        return lanes


class ChunkGradient:
    """What `FusedGradient` does, with chunks in place of samples."""

    def __init__(self, shape: PartsShape, whole: PartsNetworks) -> None:
        self._shape, self._whole = shape, whole
        lanes = MAX_LANES + 1  # the last one for what fills no piece
        size = parts_size(shape)
        self._lanes = Lanes(np.zeros((lanes, size), np.float32), np.zeros((lanes, SUMS)))
        of_units = REMEMBERED_PIECE if shape.memories else UNITS_PIECE
        self._samples = of_units if shape.kinds else PIECE
        self._workers, self._nobody = ThreadPool(1), ThreadPool(1)
        self._even: LearnChunksTask | None = None
        self._rest: LearnChunksTask | None = None
        self._sequences: Sequences | None = None

    def join(self, workers: ThreadPool) -> None:
        """From now on work with `workers`."""
        self._workers, self._even = workers, None

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

    def of(self, sequences: Sequences, chunks: Indices, loss: Loss) -> tuple[Floats, Doubles]:
        """(gradient [P], sums of the losses [6]) over all samples of `chunks`."""
        piece = max(1, self._samples // self._shape.length)
        even, lanes = len(chunks) - len(chunks) % piece, 0
        if even:
            task = self._even = self._fitting(self._even, sequences, piece, whole=True)
            lanes = task.begin_minibatch(chunks[:even], loss)
            self._workers.run(task)
        if rest := len(chunks) - even:
            task = self._rest = self._fitting(self._rest, sequences, rest, whole=False)
            task.begin_minibatch(chunks[even:], loss)
            self._nobody.run(task)
        return sum_of_lanes(self._lanes, lanes, rest=rest > 0)

    def _fitting(
        self, task: LearnChunksTask | None, sequences: Sequences, count: int, *, whole: bool
    ) -> LearnChunksTask:
        """`task` where it fits, or a new one for pieces of `count` chunks."""
        if task is not None and task.fits(sequences, count):
            return task
        part = slice(MAX_LANES) if whole else slice(MAX_LANES, None)
        sync_flags = (self._workers if whole else self._nobody).sync_flags
        most = sequences.states.shape[0] * sequences.states.shape[1] + count
        loss = np.zeros(len(Loss._fields), np.float32)
        length = len(sequences.starts) // len(sequences.states)
        return LearnChunksTask(
            whole=self._whole,
            batch=ChunkBatch(*sequences, np.zeros(most, np.int64), loss, self._shape.warm_up),
            lanes=Lanes(self._lanes.gradients[part], self._lanes.sums[part]),
            queue=new_queue(sync_flags),
            threads=new_parts_threads(self._shape, count, sync_flags, length=length),
        )
