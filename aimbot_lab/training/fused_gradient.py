"""The gradient of a minibatch, in pieces that fit the cache, on one or more threads."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.training.core.gather import gather
from aimbot_lab.training.core.parts import SUMS, Doubles, Floats, Loss
from aimbot_lab.training.fused_net import Room, backward, forward, new_room
from aimbot_lab.training.fused_weights import Net, NetShape, net_size, net_views
from aimbot_lab.training.team import MOST_THREADS, Team

Indices = npt.NDArray[np.int64]
PIECE = 512  # samples: their way through the networks fits the cache of one core
LANES = MOST_THREADS  # sums of pieces


class FusedGradient:
    """Derivatives of PPO's loss by all weights.

    Which piece is added to which lane, and in which order, does not depend on the number of
    threads, nor does the result.
    """

    def __init__(self, shape: NetShape, net: Net, team: Team) -> None:
        size = net_size(shape)
        self._shape, self._net, self._team = shape, net, team
        self._lanes = np.zeros((LANES, size), np.float32)
        self._sums = np.zeros((LANES, SUMS))
        self._desks: list[_Desk] = []

    def of(self, rows: Floats, indices: Indices, loss: Loss) -> tuple[Floats, Doubles]:
        """(gradient [P], sums of the losses [5]) over the samples `indices` of `rows` [S, W]."""
        pieces = np.array_split(indices, -(-len(indices) // PIECE))
        lanes = min(LANES, len(pieces))
        while len(self._desks) < self._team.threads:
            self._desks.append(_Desk(self._shape, self._net))

        def fill_lane(lane: int, thread: int) -> None:
            self._lanes[lane].fill(0.0)
            self._sums[lane].fill(0.0)
            for piece in pieces[lane::lanes]:
                room = self._desks[thread].room(len(piece))
                gather(rows, piece, room.samples)
                # Of a policy that diverges its weights will tell, after the update.
                with np.errstate(over="ignore", invalid="ignore"):
                    part = self._desks[thread].differentiate(room, loss, self._sums[lane])
                    self._lanes[lane] += part

        self._team.run(fill_lane, lanes)
        return self._lanes[:lanes].sum(axis=0), self._sums[:lanes].sum(axis=0)


class _Desk:
    """What one thread works with."""

    def __init__(self, shape: NetShape, net: Net) -> None:
        self._shape, self._net = shape, net
        self._gradient = np.zeros(net_size(shape), np.float32)
        self._views = net_views(shape, self._gradient)
        self._rooms: dict[int, Room] = {}

    def room(self, count: int) -> Room:
        """Room for so many samples, as it was left."""
        if count not in self._rooms:
            if len(self._rooms) == 4:  # a minibatch has pieces of two sizes, the last one others
                self._rooms.clear()
            self._rooms[count] = new_room(self._shape, count)
        return self._rooms[count]

    def differentiate(self, room: Room, loss: Loss, sums: Doubles) -> Floats:
        """The gradient [P] of the samples in `room`, to be used at once; adds to `sums`."""
        forward(self._shape, self._net, room)
        backward(self._shape, self._net, room, loss=loss, gradient=self._views, sums=sums)
        return self._gradient
