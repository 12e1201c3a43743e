"""The gradient of a minibatch, in pieces that fit the cache, on one or more threads."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.training.core.net import learn_lanes
from aimbot_lab.training.core.parts import (
    SUMS,
    Desk,
    Doubles,
    Floats,
    Lanes,
    Loss,
    Networks,
    Slopes,
    Turn,
)
from aimbot_lab.training.fused_room import new_room
from aimbot_lab.training.fused_weights import NetShape, net_size, net_views
from aimbot_lab.training.team import MOST_THREADS, Team

Indices = npt.NDArray[np.int64]
PIECE = 512  # samples: their way through the networks fits the cache of one core
MOST_LANES = MOST_THREADS


class FusedGradient:
    """Derivatives of PPO's loss by all weights.

    Which piece is added to which lane, and in which order, does not depend on the number of
    threads, nor does the result.
    """

    def __init__(self, shape: NetShape, networks: Networks, team: Team) -> None:
        size, lanes = net_size(shape), MOST_LANES + 1
        self._shape, self._networks, self._team = shape, networks, team
        self._lanes = Lanes(np.zeros((lanes, size), np.float32), np.zeros((lanes, SUMS)))
        self._desks: dict[tuple[int, int], Desk] = {}  # by thread and samples of a piece

    def of(self, rows: Floats, indices: Indices, loss: Loss) -> tuple[Floats, Doubles]:
        """(gradient [P], sums of the losses [5]) over the samples `indices` of `rows` [S, W]."""
        pieces, rest = divmod(len(indices), PIECE)
        lanes = min(MOST_LANES, pieces)
        threads = min(self._team.threads, lanes)
        even, uneven = indices[: pieces * PIECE], indices[pieces * PIECE :]

        def work(part: int, thread: int) -> None:
            desk, own, turn = self._desk(thread, PIECE), self._some(0, lanes), Turn(part, threads)
            learn_lanes(self._networks, desk, rows, even, loss, own, turn)

        self._team.run(work, threads)
        if rest:
            desk, own = self._desk(0, rest), self._some(lanes, lanes + 1)
            learn_lanes(self._networks, desk, rows, uneven, loss, own, Turn(0, 1))
        used = self._some(0, lanes + (rest > 0))
        # Of a policy that diverges its weights will tell, after the update.
        with np.errstate(over="ignore", invalid="ignore"):
            return used.gradients.sum(axis=0), used.sums.sum(axis=0)

    def _some(self, first: int, last: int) -> Lanes:
        return Lanes(self._lanes.gradients[first:last], self._lanes.sums[first:last])

    def _desk(self, thread: int, count: int) -> Desk:
        """The thread's desk for pieces of so many samples, as it was left."""
        if (thread, count) not in self._desks:
            if len(self._desks) > 2 * MOST_THREADS:  # minibatches of ever other sizes
                self._desks.clear()
            flat = np.zeros(net_size(self._shape), np.float32)
            slopes = Slopes(flat, net_views(self._shape, flat))
            self._desks[thread, count] = Desk(new_room(self._shape, count), slopes)
        return self._desks[thread, count]
