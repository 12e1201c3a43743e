"""Sums over shards in the order of one balanced binary tree, whoever holds which of the shards.

Floating-point addition is not associative: only a fixed order gives the same bits for every number
of processes. The leaves of the tree are the shards. Node k of level l covers the leaves
[k * 2^l, (k + 1) * 2^l), cut to the number of leaves; its sum is that of its left child plus that
of its right child, and that of its left child alone where the right one is empty.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

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
    with np.errstate(over="ignore", invalid="ignore"):  # who looks for divergence sees the sum
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
