"""Matrix products, exp and tanh as kernels compute them, against numpy."""

import numpy as np
import pytest

from aimbot_lab.foundation.blas import multiply, sgemm_address
from aimbot_lab.foundation.elementary import exp, tanh
from aimbot_lab.foundation.jit import kernel

Floats = np.ndarray


@kernel
def product_of(address: int, left: Floats, right: Floats, product: Floats) -> None:
    multiply(address, left, right, product)


@kernel
def all_exp(x: Floats, out: Floats) -> None:
    for n in range(x.size):
        out[n] = exp(x[n])


@kernel
def all_tanh(x: Floats, out: Floats) -> None:
    for n in range(x.size):
        out[n] = tanh(x[n])


def laid_out(rng: np.random.Generator, shape: tuple[int, int], layout: str) -> Floats:
    rows, columns = shape
    whole = rng.standard_normal((rows, columns + 3) if "part" in layout else shape)
    array = whole.astype(np.float32)[:, :columns]
    if "turned" in layout:
        return np.ascontiguousarray(array.T).T
    return array


@pytest.mark.parametrize("sizes", [(5, 3, 4), (1, 7, 2), (6, 1, 5), (4, 9, 1), (1, 1, 1)])
@pytest.mark.parametrize("left", ["whole", "part", "turned"])
@pytest.mark.parametrize("right", ["whole", "part", "turned"])
@pytest.mark.parametrize("out", ["whole", "part"])
def test_a_product_is_numpys_however_its_arrays_lie(
    sizes: tuple[int, int, int], left: str, right: str, out: str
) -> None:
    rng = np.random.default_rng(0)
    rows, inner, columns = sizes
    one, two = laid_out(rng, (rows, inner), left), laid_out(rng, (inner, columns), right)
    product = laid_out(rng, (rows, columns), out)
    product_of(sgemm_address(), one, two, product)
    np.testing.assert_allclose(product, one @ two, rtol=1e-5, atol=1e-6)


def test_a_product_leaves_what_lies_beside_it_alone() -> None:
    whole = np.full((4, 6), 7.0, np.float32)
    ones = np.ones((4, 4), np.float32)
    product_of(sgemm_address(), ones, ones[:, :3], whole[:, :3])
    assert (whole[:, :3] == 4.0).all()
    assert (whole[:, 3:] == 7.0).all()


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
