"""What the processes of one training tell each other; one process alone answers itself."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from aimbot_lab.training.processes.place import ALONE, Place
from aimbot_lab.training.processes.tree import sum_of_leaves

Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Values = NDArray[Any]


class Summed(NamedTuple):
    """The sums over all shards; valid until the next exchange."""

    gradient: Float32s  # [P]
    terms: Float64s  # [T] of the losses


class Exchange(Protocol):
    """The same calls, in the same order, by every process of a training.

    Raises LostError where another process is gone, or silent for longer than the patience.
    """

    @property
    def place(self) -> Place:
        """Where this process stands among the others."""

    def sum_up(self, gradients: Float32s, terms: Float64s, *, shards: int) -> Summed:
        """The root of the tree over all `shards`, for every process.

        `gradients` [k, P] and `terms` [k, T] are those of this process's `tree.share`, and are
        used up.
        """

    def gather(self, data: bytes) -> list[bytes]:
        """What every process gave, in the order of ranks; lengths may differ."""

    def gather_arrays(self, array: Values) -> Values:
        """[W, ...] of arrays of the same shape and type, in the order of ranks."""

    def close(self) -> None:
        """Leave the others."""


class Alone:
    """The exchange of one process."""

    place = ALONE

    def sum_up(self, gradients: Float32s, terms: Float64s, *, shards: int) -> Summed:
        """The root of the tree; the arrays are used up."""
        if len(gradients) != shards:
            raise ValueError(f"{len(gradients)} shards given, one process holds all {shards}")
        return Summed(sum_of_leaves(gradients), sum_of_leaves(terms))

    def gather(self, data: bytes) -> list[bytes]:
        """What was given."""
        return [data]

    def gather_arrays(self, array: Values) -> Values:
        """[1, ...], a view."""
        view: Values = array[None]
        return view

    def close(self) -> None:
        """Nothing to leave."""


def of_all_shards(numbers: Float64s, exchange: Exchange) -> Float64s:
    """What every process has of its shards, [S, N], from `numbers` [here, N]."""
    found = [np.frombuffer(one) for one in exchange.gather(numbers.tobytes())]
    return np.concatenate([one.reshape(-1, numbers.shape[1]) for one in found])
