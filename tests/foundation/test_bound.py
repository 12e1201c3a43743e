"""Kernels bound to the types of their first arguments."""

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pytest

from aimbot_lab.foundation.kernels.jit import Bound, kernel


class Pair(NamedTuple):
    one: np.ndarray
    two: np.ndarray


@kernel
def add_to_first(pair: Pair, factor: float) -> None:
    for k in range(pair.one.size):
        pair.one[k] += factor * pair.two[k]


def test_every_call_does_what_the_kernel_does() -> None:
    bound, pair = Bound(add_to_first), Pair(np.zeros(3), np.arange(3.0))
    for calls in range(1, 6):
        bound(pair, 2.0)
        np.testing.assert_array_equal(pair.one, [0.0, 2.0 * calls, 4.0 * calls])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda bound: pickle.loads(pickle.dumps(bound))])
def test_a_copy_looks_at_its_own_arguments(copied) -> None:
    bound, pair = Bound(add_to_first), Pair(np.zeros(3), np.arange(3.0))
    for _ in range(3):
        bound(pair, 1.0)
    twin, singles = copied(bound), Pair(np.zeros(3, np.float32), np.ones(3, np.float32))
    for _ in range(3):
        twin(singles, 1.0)
    np.testing.assert_array_equal(singles.one, [3.0, 3.0, 3.0])
    bound(pair, 1.0)
    np.testing.assert_array_equal(pair.one, [0.0, 4.0, 8.0])
