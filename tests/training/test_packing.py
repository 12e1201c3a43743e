"""A tree of values comes back from its bytes as it was, and bytes of anything else are refused."""

import math
from collections import OrderedDict

import numpy as np
import pytest
import torch as th

from aimbot_lab.training.checkpoint import pack, unpack

ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::2],  # not contiguous
    np.zeros((3, 0)),
    np.array(1.5),
    np.array([2**63], np.uint64),
    np.array([True, False]),
    np.array([-1, 7], np.int8),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_and_tensors_keep_shape_kind_and_bits(array: np.ndarray) -> None:
    back = unpack(pack([array]))[0]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)
    back[...] = 0  # it may be written to
    if array.dtype != np.uint64:
        tensor = th.from_numpy(array.copy())
        again = unpack(pack({"a": tensor}))["a"]
        assert again.dtype == tensor.dtype
        assert th.equal(again, tensor)


def test_keys_tuples_numbers_and_texts_keep_their_kind() -> None:
    tree = {
        "state": {0: {"step": th.tensor(3.0)}, 1: {}},
        "betas": (0.9, 0.999),
        "big": 2**127,
        "none": None,
        "$tuple": "a key like a mark",
        "texts": np.array(["a=1", "b=2"]),
        "number": np.float32(0.1),
    }
    back = unpack(pack(OrderedDict(tree)))
    assert list(back) == list(tree)
    assert list(back["state"]) == [0, 1]
    assert back["betas"] == (0.9, 0.999)
    assert back["big"] == 2**127
    assert back["none"] is None
    assert back["$tuple"] == "a key like a mark"
    assert back["texts"].tolist() == ["a=1", "b=2"]
    assert back["number"] == np.float32(0.1)
    assert isinstance(back["number"], np.float32)


def test_plain_values_come_back_to_the_bit() -> None:
    numbers = [math.nan, -0.0, math.inf, -math.inf, 5e-324, -(2**70), True, None]
    tree = {"": (numbers, ()), -7: [{}, "\0 é\ud800", {0: ((1,), [])}], "a": {"a": {"a": [[]]}}}
    # By text, because NaN is not equal to itself.
    assert repr(unpack(pack(tree))) == repr(tree)


def test_what_would_need_a_pickle_is_refused() -> None:
    with pytest.raises(TypeError, match="can't be packed: function"):
        pack({"schedule": lambda: 0})


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80\x04.", pack([1])[:-3], pack([1, {}])[:20], b"{" * 100_000],
    ids=["nothing", "pickle", "end missing", "beginning", "noise"],
)
def test_bytes_of_anything_else_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no packed tree"):
        unpack(data)
