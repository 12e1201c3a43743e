"""The gradient of a minibatch, in pieces that fit the cache, on one or more threads."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.threads.thread_pool import Workers
from aimbot_lab.training.fused.core.learn import PIECES, USED_LANES, learn_lanes
from aimbot_lab.training.fused.core.parts import (
    SUMS,
    Batch,
    Desk,
    Doubles,
    Floats,
    Lanes,
    Loss,
    Networks,
    Turn,
)
from aimbot_lab.training.fused.weights import NetShape, net_size
from aimbot_lab.training.fused.workspace import new_desks, new_turn

Indices = npt.NDArray[np.int64]
PIECE = 256  # samples: their way through the networks fits the cache of one core
MOST_LANES = 16


class LearnTask(NamedTuple):
    """Sums the gradients of a minibatch's pieces, all of one size."""

    networks: Networks
    batch: Batch
    lanes: Lanes
    turn: Turn
    desks: tuple[Desk, ...]

    @property
    def piece(self) -> int:
        """Samples of a piece."""
        return len(self.desks[0].room.ones)

    def __call__(self, seat: int) -> None:
        """Work as thread `seat`; a worker looks out for the next minibatch."""
        learn_lanes(*self[:4], self.desks[seat])

    def begin_turn(self, indices: Indices, loss: Loss) -> int:
        """Have the next turn do the samples `indices`, full pieces; how many lanes it fills."""
        self.batch.indices[: len(indices)] = indices
        self.batch.loss[:] = loss
        pieces = len(indices) // self.piece
        numbers, lanes = self.turn.numbers, min(pieces, len(self.lanes.sums))
        numbers[USED_LANES], numbers[PIECES] = lanes, pieces
        self.turn.taken[0] = 0
        return lanes


class FusedGradient:
    """Derivatives of PPO's loss by all weights.

    Which piece is added to which lane, and in which order, does not depend on the number of
    threads, nor does the result.
    """

    def __init__(self, shape: NetShape, networks: Networks) -> None:
        self._shape, self._networks = shape, networks
        lanes = MOST_LANES + 1  # the last one for what fills no piece
        self._lanes = Lanes(np.zeros((lanes, net_size(shape)), np.float32), np.zeros((lanes, SUMS)))
        self._workers, self._nobody = Workers(1), Workers(1)
        self._even: LearnTask | None = None  # for full pieces
        self._rest: LearnTask | None = None  # for a smaller one

    def join(self, workers: Workers) -> None:
        """From now on work with `workers`."""
        self._workers, self._even = workers, None

    def of(self, rows: Floats, indices: Indices, loss: Loss) -> tuple[Floats, Doubles]:
        """(gradient [P], sums of the losses [5]) over the samples `indices` of `rows` [S, W]."""
        even = len(indices) - len(indices) % PIECE
        lanes = 0
        if even:
            task = self._even = self._fitting(self._even, rows, PIECE)
            lanes = task.begin_turn(indices[:even], loss)
            self._workers.run(task)
        if even < len(indices):
            task = self._rest = self._fitting(self._rest, rows, len(indices) - even)
            task.begin_turn(indices[even:], loss)
            self._nobody.run(task)
        # Of a policy that diverges its weights will tell, after the update.
        with np.errstate(over="ignore", invalid="ignore"):
            gradient, sums = (array[:lanes].sum(axis=0) for array in self._lanes)
            if even < len(indices):
                gradient += self._lanes.gradients[MOST_LANES]
                sums += self._lanes.sums[MOST_LANES]
            return gradient, sums

    def _fitting(self, task: LearnTask | None, rows: Floats, count: int) -> LearnTask:
        """`task` where it is for samples of `rows` and pieces of so many, or a new one."""
        if task is not None and task.batch.rows is rows and task.piece == count:
            return task
        whole = count == PIECE
        part = slice(MOST_LANES) if whole else slice(MOST_LANES, None)
        words = (self._workers if whole else self._nobody).words
        loss = np.zeros(len(Loss._fields), np.float32)
        return LearnTask(
            networks=self._networks,
            batch=Batch(rows, np.zeros(len(rows) + count, np.int64), loss),
            lanes=Lanes(self._lanes.gradients[part], self._lanes.sums[part]),
            turn=new_turn(words),
            desks=new_desks(self._shape, count, words),
        )
