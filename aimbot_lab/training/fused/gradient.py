"""The gradient of a minibatch of chunks, in pieces that fit the cache, on one or more threads."""

from math import gcd
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th

from aimbot_lab.foundation.kernels.packed import Packed, PackedCall
from aimbot_lab.foundation.kernels.thread_pool import ThreadPool
from aimbot_lab.training.fused.core.arrays import (
    SUMS,
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
from aimbot_lab.training.fused.core.learn import PIECES, USED_LANES, learn_packed
from aimbot_lab.training.fused.layout import NetworkShape, net_size
from aimbot_lab.training.fused.workspace import new_queue, new_thread_workspaces

PIECE = 256  # samples, in whole chunks: their way through the networks fits a core's cache
UNITS_PIECE = 64  # of a network that encodes units, each of which takes as much of the cache
REMEMBERED_PIECE = 128  # of one that has a memory, too, whose steps need rows
MAX_LANES = 16  # of all shards of a training, where these are fewer


class Deal(NamedTuple):
    """What each shard's part of a minibatch is cut into."""

    piece: int  # samples, or chunks, of a full piece
    pieces: int  # full ones of a shard
    lanes: int  # of a shard, which share its full pieces
    rest: int  # samples, or chunks, of a shard that fill no piece

    def full(self, asked: Whole) -> Whole:
        """What fills pieces of `asked` [S, M], piece by piece in the order of the lanes' turns."""
        whole = asked[:, : self.pieces * self.piece]
        turns = whole.reshape(len(asked), self.pieces // self.lanes, self.lanes * self.piece)
        return turns.swapaxes(0, 1).ravel()

    def left(self, asked: Whole) -> Whole:
        """What does not, shard by shard."""
        return asked[:, self.pieces * self.piece :].ravel()


def deal(size: int, *, piece: int, shards: int) -> Deal:
    """How `size` samples of each of a training's `shards` are cut into pieces of `piece`.

    It follows from all shards, not from those that are computed here.
    """
    pieces, rest = divmod(size, piece)
    lanes = gcd(pieces, _largest_power(MAX_LANES // shards)) if pieces else 1
    return Deal(piece, pieces, lanes, rest)


def _largest_power(limit: int) -> int:
    """The largest power of two up to `limit`; 1 at least."""
    return 1 << max(limit.bit_length() - 1, 0)


def _new_lanes(count: int, size: int) -> Lanes:
    """So many lanes for gradients by `size` weights."""
    return Lanes(np.zeros((count, size), np.float32), np.zeros((count, SUMS)))


def _of_shards(full: Lanes | None, rest: Lanes | None, shards: int) -> tuple[Floats, Doubles]:
    """(gradients [S, P], sums of the losses [S, 6]) of `shards` from the lanes that they have."""
    # Of a policy that diverges its weights will tell, after the update.
    with np.errstate(over="ignore", invalid="ignore"):
        if full is None:
            assert rest is not None
            return rest.gradients, rest.sums
        gradients, sums = _together(full.gradients, shards), _together(full.sums, shards)
        if rest is None:
            return gradients, sums
        return gradients + rest.gradients, sums + rest.sums


def _together(lanes: npt.NDArray[Any], shards: int) -> npt.NDArray[Any]:
    """The sums [S, ...] over the lanes of each shard, which lie beside each other."""
    several = len(lanes) // shards
    return lanes.reshape(shards, several, -1).sum(axis=1) if several > 1 else lanes


class Sequences(NamedTuple):
    """A rollout of T steps of B rows."""

    rows: Floats  # [T B, W] its samples, step by step
    starts: Floats  # [T, B] 1 where an episode begins
    states: Floats  # [T / L, B, S, H] where each chunk begins


class LearnTask(NamedTuple):
    """Sums the gradients of a minibatch's pieces, all of as many chunks."""

    rollout: Sequences  # whose chunks they are
    batch: Batch
    lanes: Lanes
    queue: WorkQueue
    threads: tuple[ThreadWorkspace, ...]
    calls: tuple[PackedCall, ...]  # `learn_packed` as each thread calls it

    @property
    def piece(self) -> int:
        """Chunks of a piece."""
        return len(self.threads[0].workspace.carried)

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for the next minibatch."""
        self.calls[thread_id]()

    def fits(self, sequences: Sequences, piece: int, lanes: int) -> bool:
        """Whether it is for chunks of `sequences`, pieces of so many, and so many lanes."""
        return self.rollout is sequences and self.piece == piece and len(self.lanes.sums) == lanes

    def begin_minibatch(self, chunks: Whole, loss: Loss) -> None:
        """Set the next work to `chunks`, full pieces in the order of the lanes."""
        self.batch.chunks[: len(chunks)] = chunks
        self.batch.loss[:] = loss
        numbers = self.queue.numbers
        numbers[USED_LANES], numbers[PIECES] = len(self.lanes.sums), len(chunks) // self.piece
        self.queue.taken[0] = 0


class FusedGradient:
    """Derivatives of PPO's loss by all weights, shard by shard.

    Which piece is added to which lane, and in which order, does not depend on the number of
    threads, nor on the shards that are computed elsewhere; so the result does not either.
    """

    def __init__(self, shape: NetworkShape, networks: Networks) -> None:
        self._shape, self._networks = shape, networks
        of_units = REMEMBERED_PIECE if shape.memories else UNITS_PIECE
        self._samples = of_units if shape.kinds else PIECE
        self._kernel = Packed(learn_packed)
        self._workers = ThreadPool(1)
        self._full: LearnTask | None = None
        self._rest: LearnTask | None = None
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
        """(gradients [S, weights], sums of the losses [S, 6]) over all samples of chunks `asked`.

        `asked` [S, M] are those of the shards here, of so many `shards` of the training. What is
        returned is overwritten by the next call.
        """
        piece, here = max(1, self._samples // self._shape.length), len(asked)
        cut, full, rest = deal(asked.shape[1], piece=piece, shards=shards), None, None
        if cut.pieces:
            task = self._full = self._fitting(self._full, sequences, piece, cut.lanes * here)
            full = self._done(task, cut.full(asked), loss)
        if cut.rest:
            task = self._rest = self._fitting(self._rest, sequences, cut.rest, here)
            rest = self._done(task, cut.left(asked), loss)
        return _of_shards(full, rest, here)

    def _done(self, task: LearnTask, chunks: Whole, loss: Loss) -> Lanes:
        task.begin_minibatch(chunks, loss)
        self._workers.run(task)
        return task.lanes

    def _fitting(
        self, task: LearnTask | None, sequences: Sequences, piece: int, lanes: int
    ) -> LearnTask:
        """`task` where it fits, or a new one."""
        if task is not None and task.fits(sequences, piece, lanes):
            return task
        sync_flags, (rows, starts, states) = self._workers.sync_flags, sequences
        length, most = len(starts) // len(states), states.shape[0] * states.shape[1] + piece
        batch = Batch(
            rows,
            starts.reshape(-1),
            states,
            chunks=np.zeros(most, np.int64),
            loss=np.zeros(len(Loss._fields), np.float32),
            length=length,
            warm_up=self._shape.warm_up,
        )
        own = _new_lanes(lanes, net_size(self._shape))
        queue = new_queue(sync_flags)
        threads = new_thread_workspaces(self._shape, piece, sync_flags, length=length)
        shared = self._networks, batch, own, queue
        calls = tuple(self._kernel.call_with(*shared, thread) for thread in threads)
        return LearnTask(sequences, batch, own, queue, threads, calls)
