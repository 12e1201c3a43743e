"""Matrix products, exp, log and tanh as kernels compute them, against numpy."""

import itertools

import numpy as np
import pytest

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.foundation.kernels.lanes import REGISTER_LANES, dot, exp, log, multiply, tanh

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


def laid_out(rng: np.random.Generator, shape: tuple[int, int], layout: str) -> Floats:
    rows, columns = shape
    whole = rng.standard_normal((rows, columns + 3) if "part" in layout else shape)
    array = whole.astype(np.float32)[:, :columns]
    if "turned" in layout:
        return np.ascontiguousarray(array.T).T
    return array


@pytest.mark.parametrize("inner", [1, 7, 56])
@pytest.mark.parametrize("left", ["whole", "part", "turned"])
@pytest.mark.parametrize("others", ["whole", "part"])
def test_a_product_is_numpys_however_its_arrays_lie(inner: int, left: str, others: str) -> None:
    rng = np.random.default_rng(0)
    for rows, columns in itertools.product(
        [*range(1, 18), 50], (REGISTER_LANES, 3 * REGISTER_LANES)
    ):
        one, two = laid_out(rng, (rows, inner), left), laid_out(rng, (inner, columns), others)
        product = laid_out(rng, (rows, columns), others)
        product_of(one, two, product)
        np.testing.assert_allclose(product, one @ two, rtol=1e-5, atol=1e-5)


def test_a_product_leaves_what_lies_beside_it_alone() -> None:
    whole = np.full((6, REGISTER_LANES + 4), 7.0, np.float32)
    product_of(
        np.ones((5, 4), np.float32), np.ones((4, REGISTER_LANES), np.float32), whole[:5, 2:-2]
    )
    assert (whole[:5, 2:-2] == 4.0).all()
    whole[:5, 2:-2] = 7.0
    assert (whole == 7.0).all()


def test_a_row_of_a_product_does_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(0)
    one, two = laid_out(rng, (15, 40), "whole"), laid_out(rng, (40, REGISTER_LANES), "whole")
    products = np.zeros((2, 15, REGISTER_LANES), np.float32)
    product_of(one, two, products[0])
    for row in range(15):
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
    found, exact = np.empty_like(x), np.exp(x.astype(np.float64))
    all_exp(x, found)
    assert np.abs(found / exact - 1.0).max() < 2e-7
    special = np.float32([0.0, -0.0, -88.0, -1e8, -np.inf])
    found = np.empty_like(special)
    all_exp(special, found)
    np.testing.assert_array_equal(found, [1.0, 1.0, 0.0, 0.0, 0.0])


def test_log_is_close_near_one_and_far_from_it() -> None:
    x = np.concatenate([np.logspace(-37, 38, 20_000), 1.0 + np.linspace(-0.5, 1.0, 20_001)])
    x = x.astype(np.float32)
    found, exact = np.empty_like(x), np.log(x.astype(np.float64))
    all_log(x, found)
    assert (np.abs(found - exact) < 1e-7 * np.maximum(1.0, np.abs(exact))).all()
    all_log(np.ones(1, np.float32), found)
    assert found[0] == 0.0


def test_tanh_is_close_near_zero_and_far_from_it() -> None:
    x = np.logspace(-30, 2, 20_000)
    x = np.concatenate([x, -x]).astype(np.float32)
    found, exact = np.empty_like(x), np.tanh(x.astype(np.float64))
    all_tanh(x, found)
    assert np.abs(found / exact - 1.0).max() < 2e-7
    special = np.float32([0.0, np.inf, -np.inf, np.nan])
    found = np.empty_like(special)
    all_tanh(special, found)
    np.testing.assert_array_equal(found, [0.0, 1.0, -1.0, np.nan])
