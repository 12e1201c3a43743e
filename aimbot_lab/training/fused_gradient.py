"""The gradient of a minibatch, in pieces that fit the cache, on one or more threads."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.training.core.net import learn_piece
from aimbot_lab.training.core.parts import SUMS, Doubles, Floats, Lane, Loss, Networks, Room, Slopes
from aimbot_lab.training.fused_room import new_room
from aimbot_lab.training.fused_weights import NetShape, net_size, net_views
from aimbot_lab.training.team import MOST_THREADS, Team

Indices = npt.NDArray[np.int64]
PIECE = 512  # samples: their way through the networks fits the cache of one core
LANES = MOST_THREADS  # sums of pieces


class FusedGradient:
    """Derivatives of PPO's loss by all weights.

    Which piece is added to which lane, and in which order, does not depend on the number of
    threads, nor does the result.
    """

    def __init__(self, shape: NetShape, networks: Networks, team: Team) -> None:
        size = net_size(shape)
        self._shape, self._networks, self._team = shape, networks, team
        self._lanes = np.zeros((LANES, size), np.float32)
        self._sums = np.zeros((LANES, SUMS))
        self._desks: list[_Desk] = []

    def of(self, rows: Floats, indices: Indices, loss: Loss) -> tuple[Floats, Doubles]:
        """(gradient [P], sums of the losses [5]) over the samples `indices` of `rows` [S, W]."""
        pieces = np.array_split(indices, -(-len(indices) // PIECE))
        lanes = min(LANES, len(pieces))
        while len(self._desks) < self._team.threads:
            self._desks.append(_new_desk(self._shape))
        self._lanes.fill(0.0)
        self._sums.fill(0.0)

        def fill_lane(number: int, thread: int) -> None:
            desk, lane = self._desks[thread], Lane(self._lanes[number], self._sums[number])
            for piece in pieces[number::lanes]:
                room = desk.room(self._shape, len(piece))
                learn_piece(self._networks, room, rows, piece, loss, desk.slopes, lane)

        self._team.run(fill_lane, lanes)
        # Of a policy that diverges its weights will tell, after the update.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._lanes[:lanes].sum(axis=0), self._sums[:lanes].sum(axis=0)


class _Desk(NamedTuple):
    """What one thread works with."""

    slopes: Slopes
    rooms: dict[int, Room]  # by number of samples

    def room(self, shape: NetShape, count: int) -> Room:
        """Room for so many samples, as it was left."""
        if count not in self.rooms:
            if len(self.rooms) == 4:  # a minibatch has pieces of two sizes, the last one others
                self.rooms.clear()
            self.rooms[count] = new_room(shape, count)
        return self.rooms[count]


def _new_desk(shape: NetShape) -> _Desk:
    flat = np.zeros(net_size(shape), np.float32)
    return _Desk(Slopes(flat, net_views(shape, flat)), {})
