"""Blocks of a training's rows: what depends on shapes, streams or the order of sums goes by them.

What is learned then depends on how many there are, and not on the process that computes each.
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.seeds import derive_seed

MAX_AUTO = 16
MAX_SHARDS = 64
MIN_SAMPLES = 256  # of a minibatch, below which threads and pieces have too little to do
MIN_ROWS = 2

Int64Array = npt.NDArray[np.int64]


class Shards(NamedTuple):
    """Blocks of as many neighbouring rows each, some of which are computed here."""

    total: int  # of the whole training
    first: int  # of those here
    here: int
    rows: int  # of each

    @property
    def numbers(self) -> range:
        """Those that are computed here."""
        return range(self.first, self.first + self.here)

    @property
    def first_row(self) -> int:
        """Number of the first row here among all rows."""
        return self.first * self.rows


def one_shard(rows: int) -> Shards:
    """All `rows` in a single block."""
    return Shards(1, 0, 1, rows)


def divides(count: int, rows: int, batch: int) -> bool:
    """Whether `rows` and a minibatch's `batch` of samples or chunks make `count` shards."""
    return rows % count == 0 and batch % count == 0 and rows // count >= min(MIN_ROWS, rows)


def usual_count(rows: int, batch: int, *, samples: int = 1) -> int:
    """How many shards suit `rows` and minibatches of `batch` pieces of `samples` each.

    The largest power of two up to MAX_AUTO that divides both and leaves each shard MIN_ROWS and
    MIN_SAMPLES.
    """
    count = MAX_AUTO
    while count > 1 and not (
        divides(count, rows, batch) and batch // count * samples >= MIN_SAMPLES
    ):
        count //= 2
    return count


def asked_count(asked: int | Literal["auto"], rows: int, batch: int, *, samples: int = 1) -> int:
    """`asked`, or as many shards as suit. Raises ValueError for a number that does not divide."""
    if asked == "auto":
        return usual_count(rows, batch, samples=samples)
    if not divides(asked, rows, batch):
        pieces = "samples" if samples == 1 else f"sequences of {samples} samples"
        near = [count for count in range(1, MAX_SHARDS + 1) if divides(count, rows, batch)]
        nearest = min(near, key=lambda count: abs(count - asked))
        raise ValueError(
            f"must divide {rows} rows, 2 or more to each, and minibatches of {batch} {pieces} "
            f"(got {asked}; nearest that does: {nearest})"
        )
    return asked


def permutations(shards: Shards, size: int, *, seed: int, update: int, epoch: int) -> Int64Array:
    """The order [here, size] in which an epoch takes `size` pieces of each shard.

    It depends on these numbers and that of the shard alone. `update` is the number of environment
    steps.
    """
    keys = (derive_seed(seed, "order", update, epoch, shard) for shard in shards.numbers)
    return np.stack([np.random.Generator(np.random.Philox(key=k)).permutation(size) for k in keys])
