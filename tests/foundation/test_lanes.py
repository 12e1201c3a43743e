"""Lanes: each operation gives numpy's bits, compiled and as plain Python."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.foundation.kernels.lanes import LANES, bits_of, load, root, spread, store, where

ODD = np.float32([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-42])
Numbers = np.ndarray[Any, np.dtype[np.float32]]


@kernel
def combine(left: Any, right: Any, out: Any) -> None:
    """A row of `out` [8, W] for each operation on `left` and `right` [1, W]."""
    for first in range(0, left.shape[1], LANES):
        x, y = load(left, 0, first), load(right, 0, first)
        store(out, 0, first, x + y)
        store(out, 1, first, x - y)
        store(out, 2, first, x * y)
        store(out, 3, first, x / y)
        store(out, 4, first, abs(x))
        store(out, 5, first, root(x))
        store(out, 6, first, where((x < y) & (x <= y), x, y))
        store(out, 7, first, where(x > spread(np.float32(0.5)), spread(np.float32(2.0)), y))


@kernel
def compare(left: Any, right: Any, found: Any) -> None:
    """A row of `found` [5, W / LANES] for each comparison of `left` and `right` [1, W]."""
    for group in range(found.shape[1]):
        x, y = load(left, 0, group * LANES), load(right, 0, group * LANES)
        found[0, group] = bits_of(x < y)
        found[1, group] = bits_of(x <= y)
        found[2, group] = bits_of(x > y)
        found[3, group] = bits_of(x >= y)
        found[4, group] = bits_of(x == y)


@kernel
def write_third(array: Any, number: int) -> None:
    """Write `number` into lanes of row 1 from column 3 on."""
    store(array, 1, 3, spread(np.int32(number)))


def numbers() -> tuple[Numbers, Numbers]:
    """Two rows [1, W]: every pair of odd numbers, then drawn ones."""
    generator = np.random.default_rng(3)
    drawn = generator.normal(scale=9.0, size=(2, 4096)).astype(np.float32)
    left = np.concatenate([np.repeat(ODD, len(ODD)), drawn[0]])
    right = np.concatenate([np.tile(ODD, len(ODD)), drawn[1]])
    return left[None], right[None]


def check_all() -> None:
    """Raise AssertionError where lanes and numpy differ in a bit."""
    left, right = numbers()
    out = np.empty((8, left.shape[1]), np.float32)
    combine(left, right, out)
    with np.errstate(all="ignore"):
        wanted = [
            left + right,
            left - right,
            left * right,
            left / right,
            np.abs(left),
            np.sqrt(left),
            np.where(left < right, left, right),
            np.where(left > 0.5, np.float32(2.0), right),
        ]
    for row, expected in zip(out, wanted, strict=True):
        np.testing.assert_array_equal(np.isnan(row), np.isnan(expected[0]))
        there = ~np.isnan(row)
        np.testing.assert_array_equal(row[there].view(np.int32), expected[0, there].view(np.int32))
    for kind in (np.float32, np.int32):
        one, other = (np.nan_to_num(x, posinf=9, neginf=-9).astype(kind) for x in (left, right))
        if kind is np.float32:
            one, other = left, right
        found = np.empty((5, left.shape[1] // LANES), np.int64)
        compare(one, other, found)
        truths = [one < other, one <= other, one > other, one >= other, one == other]
        for row, truth in zip(found, truths, strict=True):
            bits = truth.reshape(-1, LANES) @ (1 << np.arange(LANES))
            np.testing.assert_array_equal(row, bits)


def check_store() -> None:
    """Raise AssertionError where a store writes elsewhere than it says."""
    array = np.zeros((3, LANES + 5), np.int32)
    write_third(array, 7)
    wanted = np.zeros_like(array)
    wanted[1, 3 : 3 + LANES] = 7
    np.testing.assert_array_equal(array, wanted)


def test_every_operation_gives_the_bits_of_numpy() -> None:
    check_all()


def test_a_store_writes_its_lanes_and_no_more() -> None:
    check_store()


def test_plain_python_gives_the_same() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, __file__], env=environment, check=True, capture_output=True)


def test_lanes_of_two_types_are_not_mixed() -> None:
    left = np.zeros((1, LANES), np.float32)
    with pytest.raises(Exception, match=r"(?i)no implementation|invalid use"):
        combine(left, left.astype(np.int32), np.empty((8, LANES), np.float32))


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        check_all()
    check_store()
