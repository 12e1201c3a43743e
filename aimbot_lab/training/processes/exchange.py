"""Rows cut into shards, and sums over the shards of all processes in one fixed order.

Shards depend on the number of rows alone. What depends on shapes, streams or the order of sums goes
by them, so that what is learned does not depend on which process computes each.

Floating-point addition is not associative: only a fixed order gives the same bits for every number
of processes. So sums over shards follow one balanced binary tree, whose leaves are the shards.
Node k of level l covers the leaves [k * 2^l, (k + 1) * 2^l), cut to the number of leaves; its sum
is that of its left child plus that of its right child, and that of its left child alone where the
right one is empty.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
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


class ShardCountError(ValueError):
    """A number of shards that does not suit."""


def asked_count(asked: int | Literal["auto"], rows: int, batch: int, *, samples: int = 1) -> int:
    """`asked`, or as many shards as suit. Raises ShardCountError for one that does not divide."""
    if asked == "auto":
        return usual_count(rows, batch, samples=samples)
    if not divides(asked, rows, batch):
        pieces = "samples" if samples == 1 else f"sequences of {samples} samples"
        near = [count for count in range(1, MAX_SHARDS + 1) if divides(count, rows, batch)]
        nearest = min(near, key=lambda count: abs(count - asked))
        raise ShardCountError(
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


RANK = "RANK"
WORLD_SIZE = "WORLD_SIZE"
ADDRESS = "MASTER_ADDR"
PORT = "MASTER_PORT"
RUN_ID = "TORCHELASTIC_RUN_ID"  # its setter chose the port
RESTART = "TORCHELASTIC_RESTART_COUNT"
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
INTERFACE = "GLOO_SOCKET_IFNAME"


@dataclass(frozen=True)
class Rank:
    """Which process this is, of how many."""

    rank: int
    count: int

    @property
    def leads(self) -> bool:
        """Whether it shows progress, tracks, and writes the run's folder."""
        return self.rank == 0


ALONE = Rank(0, 1)


class LostError(RunFailedError):
    """Another process of the training is gone or silent; all can begin again from a checkpoint."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h


def rank_from_environment(environment: Mapping[str, str] = os.environ) -> Rank:
    """The rank that torchrun, or what else started this process, wrote into the environment.

    Raises ConfigurationError where the two variables contradict each other or are not numbers.
    """
    given = {name: environment[name] for name in (RANK, WORLD_SIZE) if name in environment}
    if not given:
        return ALONE
    shown = " ".join(f"{name}={value}" for name, value in given.items())
    try:
        place = Rank(int(given[RANK]), int(given[WORLD_SIZE]))
    except (KeyError, ValueError) as error:
        raise ConfigurationError(
            f"environment: {shown}: {RANK} and {WORLD_SIZE} must both be whole numbers, or unset"
        ) from error
    if not 0 <= place.rank < place.count:
        raise ConfigurationError(
            f"environment: {shown}: {RANK} must be 0 to {WORLD_SIZE} - 1, {WORLD_SIZE} at least 1"
        )
    return place


KEPT_FOLDS = 64
Numbers = NDArray[np.floating[Any]]
Number = TypeVar("Number", np.float32, np.float64)


class Node(NamedTuple):
    """A node of the tree by its level (0: the leaves) and its number within the level."""

    level: int
    number: int


class Fold(NamedTuple):
    """Additions that turn neighbouring nodes into the largest ones that they make up."""

    additions: tuple[tuple[int, int], ...]  # in order: to the first row is added the second
    rows: tuple[int, ...]  # those that then hold the sums of `nodes`
    nodes: tuple[Node, ...]


def share(rank: int, count: int, total: int) -> range:
    """The leaves of process `rank` of `count`."""
    return range(rank * total // count, (rank + 1) * total // count)


def leaf_nodes(leaves: Iterable[int]) -> tuple[Node, ...]:
    """The leaves as nodes."""
    return tuple(Node(0, leaf) for leaf in leaves)


def whole_nodes(leaves: Iterable[int], total: int) -> tuple[Node, ...]:
    """The largest nodes of a tree of `total` leaves that lie within neighbouring `leaves`."""
    return fold(leaf_nodes(leaves), total).nodes


@lru_cache(KEPT_FOLDS)
def fold(nodes: tuple[Node, ...], total: int) -> Fold:
    """How neighbouring `nodes`, given from left to right, add up in a tree of `total` leaves."""
    additions: list[tuple[int, int]] = []
    rows: list[int] = []
    stack: list[Node] = []
    for row, given in enumerate(nodes):
        node = _lifted(given, total)
        while stack and node.number % 2 and stack[-1] == (node.level, node.number - 1):
            stack.pop()
            left = rows.pop()
            additions.append((left, row))
            row = left  # noqa: PLW2901  # where the sum is now
            node = _lifted(Node(node.level + 1, node.number // 2), total)
        stack.append(node)
        rows.append(row)
    return Fold(tuple(additions), tuple(rows), tuple(stack))


def add_up(rows: Sequence[Numbers], additions: Iterable[tuple[int, int]]) -> None:
    """Make `additions` in place, where `rows` are arrays of one shape."""
    with np.errstate(over="ignore", invalid="ignore"):  # the sum shows a divergence
        for into, added in additions:
            np.add(rows[into], rows[added], out=rows[into])


def sum_of_leaves(leaves: NDArray[Number]) -> NDArray[Number]:
    """The root [...] of all `leaves` [S, ...]: a view of the first one, the others are used up."""
    add_up(list(leaves), fold(leaf_nodes(range(len(leaves))), len(leaves)).additions)
    root: NDArray[Number] = leaves[0]
    return root


def _lifted(node: Node, total: int) -> Node:
    """`node`, or the highest one above it that covers the same leaves."""
    level, number = node
    while number and number % 2 == 0 and (number + 1) << level >= total:
        level, number = level + 1, number // 2
    return Node(level, number)


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
    def place(self) -> Rank:
        """Which process this is, of how many."""

    def sum_up(self, gradients: Float32s, terms: Float64s, *, shards: int) -> Summed:
        """The root of the tree over all `shards`, for every process.

        `gradients` [k, P] and `terms` [k, T] are those of this process's `share`, and are
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
