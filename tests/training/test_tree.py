"""The order of sums does not depend on who holds which leaves."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from aimbot_lab.training.processes.exchange import (
    Node,
    Numbers,
    add_up,
    fold,
    leaf_nodes,
    share,
    sum_of_leaves,
    whole_nodes,
)

COUNTS = range(1, 65)
SPLITS = 4  # random ones for each number of leaves


def leaves_of(total: int, kind: type[np.floating[Any]] = np.float32) -> Numbers:
    """Numbers [total, 5] of very different size, so that another order gives other bits."""
    rng = np.random.default_rng(total)
    size = 10.0 ** rng.uniform(-3, 3, (total, 5))
    leaves: Numbers = (rng.standard_normal((total, 5)) * size).astype(kind)
    return leaves


def by_definition(leaves: Numbers, level: int, index: int) -> Numbers:
    """The sum of a node, as the tree is defined."""
    first, middle = index << level, (2 * index + 1) << level >> 1
    if level == 0:
        leaf: Numbers = leaves[first]
        return leaf
    left = by_definition(leaves, level - 1, 2 * index)
    if middle >= len(leaves):
        return left
    return left + by_definition(leaves, level - 1, 2 * index + 1)


def root(leaves: Numbers) -> Numbers:
    return by_definition(leaves, (len(leaves) - 1).bit_length(), 0)


def cuts(total: int, rng: np.random.Generator) -> list[range]:
    """[0, total) in a random number of neighbouring ranges, none of them empty."""
    parts = int(rng.integers(1, total + 1))
    inner = sorted(rng.choice(np.arange(1, total), parts - 1, replace=False)) if parts > 1 else []
    ends = [0, *map(int, inner), total]
    return [range(a, b) for a, b in pairwise(ends)]


def summed_in(ranges: Sequence[range], leaves: Numbers) -> Numbers:
    """The root, where each range is folded by itself and then all their nodes."""
    total = len(leaves)
    rows: list[Numbers] = []
    nodes: list[Node] = []
    for one in ranges:
        own = list(leaves[one.start : one.stop].copy())
        part = fold(leaf_nodes(one), total)
        add_up(own, part.additions)
        rows += [own[row] for row in part.rows]
        nodes += part.nodes
    whole = fold(tuple(nodes), total)
    assert len(whole.nodes) == 1
    add_up(rows, whole.additions)
    return rows[whole.rows[0]]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_sum_of_leaves_is_the_tree_by_definition(kind: type[np.floating[Any]]) -> None:
    for total in COUNTS:
        leaves = leaves_of(total, kind)
        expected = root(leaves)
        found = sum_of_leaves(leaves.copy())
        assert found.dtype == kind
        assert found.tobytes() == expected.tobytes(), total


def test_every_split_gives_the_bits_of_one_range() -> None:
    for total in COUNTS:
        leaves, rng = leaves_of(total), np.random.default_rng(1000 + total)
        expected = root(leaves).tobytes()
        for _ in range(SPLITS):
            ranges = cuts(total, rng)
            assert summed_in(ranges, leaves).tobytes() == expected, ranges
        ranges = [share(rank, 1 + total // 3, total) for rank in range(1 + total // 3)]
        assert [leaf for one in ranges for leaf in one] == list(range(total))
        assert summed_in(ranges, leaves).tobytes() == expected, ranges


def test_whole_nodes_are_the_largest_within_a_range() -> None:
    assert whole_nodes(range(3, 14), 16) == ((0, 3), (2, 1), (2, 2), (1, 6))
    assert whole_nodes(range(16), 16) == ((4, 0),)
    assert whole_nodes(range(4, 8), 16) == ((2, 1),)
    assert whole_nodes(range(5, 5), 16) == ()
    assert whole_nodes(range(4, 5), 5) == ((2, 1),), "its right siblings are empty"
    assert whole_nodes(range(1), 1) == (Node(0, 0),)


def test_numbers_too_large_add_up_to_infinity_without_a_warning() -> None:
    huge = np.full((2, 1), np.finfo(np.float32).max, np.float32)
    assert sum_of_leaves(huge) == np.inf
