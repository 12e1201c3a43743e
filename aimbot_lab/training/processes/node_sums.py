"""The root of the tree for every process: each sends the sums of its largest whole nodes.

Where every process holds one node of the same level, and their number is a power of two, the tree's
upper levels are swaps between two processes, log2 W of them (a + b is b + a to the bit). Elsewhere
every process gets all nodes, and adds them up by itself.
"""

from typing import NamedTuple, Protocol

import numpy as np
import torch as th

from aimbot_lab.training.processes.exchange import Float32s, Float64s, Summed, Values
from aimbot_lab.training.processes.place import Place
from aimbot_lab.training.processes.tree import (
    Fold,
    Node,
    add_up,
    fold,
    leaf_nodes,
    share,
    whole_nodes,
)

ALIGNMENT = 64  # bytes, of a node's sums within a message


class Widths(NamedTuple):
    """How many numbers a node's sums hold."""

    gradient: int  # P, float32
    terms: int  # T, float64


class Wire(Protocol):
    """What carries bytes between the processes."""

    def swap(self, other: int, mine: th.Tensor, theirs: th.Tensor) -> None:
        """Send `mine` to the process `other`, and receive `theirs` from it."""

    def all_gather(self, mine: th.Tensor, everyones: th.Tensor) -> None:
        """Receive what every process sent, in the order of ranks."""


class NodeSums(Protocol):
    """A way up the tree."""

    def up(self, gradients: Float32s, terms: Float64s) -> Summed:
        """The root over all shards, from this process's own [k, P] and [k, T]."""


def node_sums(wire: Wire, place: Place, *, shards: int, widths: Widths) -> NodeSums:
    """The shortest way up for this number of processes and shards."""
    if _is_one_level(_everyones(place, shards)):
        return _Doubling(wire, place, _own(place, shards), widths)
    return gathering(wire, place, shards=shards, widths=widths)


def gathering(wire: Wire, place: Place, *, shards: int, widths: Widths) -> NodeSums:
    """The way for any number of processes and shards, on which everyone gets all nodes."""
    nodes = _everyones(place, shards)
    return _Gathering(wire, _own(place, shards), everyones=nodes, shards=shards, widths=widths)


def _everyones(place: Place, shards: int) -> list[tuple[Node, ...]]:
    ranks = range(place.count)
    return [whole_nodes(share(rank, place.count, shards), shards) for rank in ranks]


def _own(place: Place, shards: int) -> Fold:
    return fold(leaf_nodes(share(place.rank, place.count, shards)), shards)


def _is_one_level(nodes: list[tuple[Node, ...]]) -> bool:
    count, first = len(nodes), nodes[0]
    return count & (count - 1) == 0 and all(
        len(held) == 1 and held[0] == (first[0].level, rank) for rank, held in enumerate(nodes)
    )


class _Slot:
    """The sums of a node within a message: the terms, then the gradient."""

    def __init__(self, data: Values, widths: Widths) -> None:
        end = 8 * widths.terms
        self.terms: Float64s = data[:end].view(np.float64)
        self.gradient: Float32s = data[end : end + 4 * widths.gradient].view(np.float32)


class _Doubling:
    """Swaps with the process 1, 2, 4 ... away."""

    def __init__(self, wire: Wire, place: Place, own: Fold, widths: Widths) -> None:
        self._wire, self._place, self._own = wire, place, own
        self._messages = [th.empty(_stride(widths), dtype=th.uint8) for _ in range(2)]
        self._mine, self._theirs = (_Slot(one.numpy(), widths) for one in self._messages)

    def up(self, gradients: Float32s, terms: Float64s) -> Summed:
        mine, theirs = self._mine, self._theirs
        _fold_into([mine], self._own, gradients, terms)
        rank, distance = self._place.rank, 1
        while distance < self._place.count:
            self._wire.swap(rank ^ distance, *self._messages)
            with np.errstate(over="ignore", invalid="ignore"):
                for own, other in (mine.terms, theirs.terms), (mine.gradient, theirs.gradient):
                    left, right = (other, own) if rank & distance else (own, other)
                    np.add(left, right, out=own)
            distance *= 2
        return Summed(mine.gradient, mine.terms)


class _Gathering:
    """Everyone's nodes go to everyone."""

    def __init__(
        self,
        wire: Wire,
        own: Fold,
        *,
        everyones: list[tuple[Node, ...]],
        shards: int,
        widths: Widths,
    ) -> None:
        self._wire, self._own = wire, own
        count, most = len(everyones), max(map(len, everyones))
        self._mine = th.zeros(most, _stride(widths), dtype=th.uint8)
        self._all = th.zeros(count, most, _stride(widths), dtype=th.uint8)
        self._sent = [_Slot(row, widths) for row in self._mine.numpy()]
        rows = [
            row
            for nodes, rows in zip(everyones, self._all.numpy(), strict=True)
            for row, _ in zip(rows, nodes, strict=False)
        ]
        self._received = [_Slot(row, widths) for row in rows]
        self._rest = fold(tuple(node for nodes in everyones for node in nodes), shards)

    def up(self, gradients: Float32s, terms: Float64s) -> Summed:
        _fold_into(self._sent, self._own, gradients, terms)
        self._wire.all_gather(self._mine, self._all)
        add_up([slot.gradient for slot in self._received], self._rest.additions)
        add_up([slot.terms for slot in self._received], self._rest.additions)
        root = self._received[self._rest.rows[0]]
        return Summed(root.gradient, root.terms)


def _fold_into(slots: list[_Slot], own: Fold, gradients: Float32s, terms: Float64s) -> None:
    """Add the leaves up as far as this process can, and put the nodes into a message."""
    add_up(list(gradients), own.additions)
    add_up(list(terms), own.additions)
    for slot, row in zip(slots, own.rows, strict=False):
        slot.gradient[:] = gradients[row]
        slot.terms[:] = terms[row]


def _stride(widths: Widths) -> int:
    """Bytes of a node's sums."""
    size = 4 * widths.gradient + 8 * widths.terms
    return -(-size // ALIGNMENT) * ALIGNMENT
