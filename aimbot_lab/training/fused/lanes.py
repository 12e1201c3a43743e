"""How the pieces of a minibatch go to the lanes in which their gradients are summed."""

from math import gcd
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.training.fused.core.parts import SUMS, Doubles, Floats, Lanes, Whole

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
    lanes = gcd(pieces, largest_power(MAX_LANES // shards)) if pieces else 1
    return Deal(piece, pieces, lanes, rest)


def largest_power(limit: int) -> int:
    """The largest power of two up to `limit`; 1 at least."""
    return 1 << max(limit.bit_length() - 1, 0)


def new_lanes(count: int, size: int) -> Lanes:
    """So many lanes for gradients by `size` weights."""
    return Lanes(np.zeros((count, size), np.float32), np.zeros((count, SUMS)))


def of_shards(full: Lanes | None, rest: Lanes | None, shards: int) -> tuple[Floats, Doubles]:
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
