"""Arithmetic of kernels: lanes, products and functions."""

import itertools
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.foundation.kernels.lanes import (
    LANES,
    REGISTER_LANES,
    bits_of,
    dot,
    exp,
    load,
    log,
    multiply,
    root,
    spread,
    store,
    tanh,
    where,
)
from tests.installed import said_by

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
    """Raise AssertionError where lanes and numpy differ in a bit, or a store writes elsewhere."""
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
    array = np.zeros((3, LANES + 5), np.int32)
    write_third(array, 7)
    wanted = np.zeros_like(array)
    wanted[1, 3 : 3 + LANES] = 7
    np.testing.assert_array_equal(array, wanted)


def test_every_operation_gives_the_bits_of_numpy_compiled_and_in_plain_python() -> None:
    check_all()
    said_by(__file__, NUMBA_DISABLE_JIT="1")


def test_lanes_of_two_types_are_not_mixed() -> None:
    left = np.zeros((1, LANES), np.float32)
    with pytest.raises(Exception, match=r"(?i)no implementation|invalid use"):
        combine(left, left.astype(np.int32), np.empty((8, LANES), np.float32))


Floats = np.ndarray


@kernel
def product_of(left: Floats, right: Floats, product: Floats) -> None:
    multiply(left, right, product)


@kernel
def dot_of(left: Floats, right: Floats) -> float:
    return float(dot(left, right))


@kernel
def all_exp(x: Floats, out: Floats) -> None:
    for n in range(x.size):
        out[n] = exp(x[n])


@kernel
def all_tanh(x: Floats, out: Floats) -> None:
    for n in range(x.size):
        out[n] = tanh(x[n])


@kernel
def all_log(x: Floats, out: Floats) -> None:
    for n in range(x.size):
        out[n] = log(x[n])


def applied(work: Any, numbers: Any) -> Floats:
    """What `work` makes of each number."""
    x = np.asarray(numbers, np.float32)
    work(x, found := np.empty_like(x))
    return found


def laid_out(rng: np.random.Generator, shape: tuple[int, int], layout: str) -> Floats:
    rows, columns = shape
    whole = rng.standard_normal((rows, columns + 3) if "part" in layout else shape)
    array = whole.astype(np.float32)[:, :columns]
    if "turned" in layout:
        return np.ascontiguousarray(array.T).T
    return array


LAYOUTS = ("whole", "whole"), ("part", "part"), ("turned", "whole"), ("turned", "part")


@pytest.mark.parametrize(("left", "others"), LAYOUTS)
def test_a_product_is_numpys_however_its_arrays_lie(left: str, others: str) -> None:
    rng = np.random.default_rng(0)
    for inner, rows, columns in itertools.product(
        (0, 1, 7, 56, 257, 600), (*range(1, 18), 50), (REGISTER_LANES, 3 * REGISTER_LANES)
    ):
        one, two = laid_out(rng, (rows, inner), left), laid_out(rng, (inner, columns), others)
        product = laid_out(rng, (rows, columns), others)
        product[...] = np.nan
        product_of(one, two, product)
        near = 1e-5 if inner < 100 else 5e-4
        np.testing.assert_allclose(product, one @ two, rtol=1e-5, atol=near)


def test_a_product_leaves_what_lies_beside_it_alone() -> None:
    whole = np.full((6, REGISTER_LANES + 4), 7.0, np.float32)
    product_of(
        np.ones((5, 4), np.float32), np.ones((4, REGISTER_LANES), np.float32), whole[:5, 2:-2]
    )
    assert (whole[:5, 2:-2] == 4.0).all()
    whole[:5, 2:-2] = 7.0
    assert (whole == 7.0).all()


@pytest.mark.parametrize(("rows", "inner"), [(15, 40), (60, 600)])
def test_a_row_of_a_product_does_not_depend_on_the_rows_beside_it(rows: int, inner: int) -> None:
    rng = np.random.default_rng(0)
    one, two = (laid_out(rng, shape, "whole") for shape in ((rows, inner), (inner, REGISTER_LANES)))
    products = np.zeros((2, rows, REGISTER_LANES), np.float32)
    product_of(one, two, products[0])
    for row in range(rows):
        product_of(one[row : row + 1], two, products[1, row : row + 1])
    np.testing.assert_array_equal(*products)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 100, 512])
def test_a_dot_product_is_numpys(count: int) -> None:
    one, two = np.random.default_rng(0).standard_normal((2, count)).astype(np.float32)
    exact = float(one.astype(np.float64) @ two.astype(np.float64))
    assert dot_of(one, two) == pytest.approx(exact, abs=1e-5)


def test_exp_is_within_an_unit_in_the_last_place() -> None:
    x = np.concatenate([-np.logspace(-30, np.log10(86.9), 20_000), np.linspace(-20, 88, 20_000)])
    x = x.astype(np.float32)
    assert np.abs(applied(all_exp, x) / np.exp(x.astype(np.float64)) - 1.0).max() < 2e-7
    found = applied(all_exp, [0.0, -0.0, -88.0, -1e8, -np.inf])
    np.testing.assert_array_equal(found, [1.0, 1.0, 0.0, 0.0, 0.0])


def test_log_is_close_near_one_and_far_from_it() -> None:
    x = np.concatenate([np.logspace(-37, 38, 20_000), 1.0 + np.linspace(-0.5, 1.0, 20_001)])
    x = x.astype(np.float32)
    exact = np.log(x.astype(np.float64))
    assert (np.abs(applied(all_log, x) - exact) < 1e-7 * np.maximum(1.0, np.abs(exact))).all()
    assert applied(all_log, [1.0])[0] == 0.0


def test_tanh_is_close_near_zero_and_far_from_it() -> None:
    x = np.logspace(-30, 2, 20_000)
    x = np.concatenate([x, -x]).astype(np.float32)
    assert np.abs(applied(all_tanh, x) / np.tanh(x.astype(np.float64)) - 1.0).max() < 2e-7
    found = applied(all_tanh, [0.0, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(found, [0.0, 1.0, -1.0, np.nan])


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        check_all()
