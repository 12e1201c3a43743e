"""Kernels that find their arguments in memory."""

import copy
import pickle
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.foundation.kernels.packed import (
    Packed,
    PackedTable,
    needed_bytes,
    pack,
    unpacked,
    unpacked_like,
)


class Pair(NamedTuple):
    one: np.ndarray
    two: np.ndarray


class Scaled(NamedTuple):
    pair: Pair
    table: np.ndarray
    whole: int
    is_on: bool


@inlined
def add_to_first(scaled: Scaled, factor: float) -> None:
    pair = scaled.pair
    if scaled.is_on:
        for k in range(pair.one.size):
            pair.one[k] += factor * pair.two[k] + scaled.table[1, 2] * scaled.whole


@kernel
def keep_scaled(arguments: Any, address: int) -> None:
    pack(arguments, address)


@kernel
def add_packed(address: int, kind: Any) -> None:
    add_to_first(*unpacked(address, kind))


@kernel
def add_chosen(places: Any, example: Scaled, chosen: np.ndarray) -> None:
    for number in chosen:
        add_to_first(unpacked_like(places[number], example), 1.0)


def scaled(dtype: type = np.float64, *, whole: int = 2, is_on: bool = True) -> Scaled:
    table = np.arange(6.0).reshape(2, 3)
    return Scaled(Pair(np.zeros(3, dtype), np.arange(3).astype(dtype)), table, whole, is_on)


def test_every_call_works_on_the_arrays_as_they_are() -> None:
    given = scaled()
    call = Packed(keep_scaled, add_packed).call_with(given, 2.0)
    for calls in range(1, 4):
        call()
        np.testing.assert_array_equal(given.pair.one, np.array([10.0, 12.0, 14.0]) * calls)
    given.table[1, 2] = 0.0
    given.pair.two[:] = 1.0
    call()
    np.testing.assert_array_equal(given.pair.one, [32.0, 38.0, 44.0])


def test_each_call_has_arguments_of_its_own() -> None:
    packed, one, two = (
        Packed(keep_scaled, add_packed),
        scaled(whole=0),
        scaled(whole=1, is_on=False),
    )
    calls = [packed.call_with(one, 1.0), packed.call_with(two, 5.0), packed.call_with(one, 3.0)]
    for call in calls:
        call()
    np.testing.assert_array_equal(one.pair.one, [0.0, 4.0, 8.0])
    np.testing.assert_array_equal(two.pair.one, [0.0, 0.0, 0.0])


@numba.extending.intrinsic
def bytes_of(_typing, value):
    def code(context, builder, _signature, _arguments):
        return context.get_constant(
            numba.int64, context.get_abi_sizeof(context.get_data_type(value))
        )

    return numba.int64(value), code


@numba.njit
def held_bytes(value):
    return bytes_of(value)


def test_memory_is_enough_for_every_argument() -> None:
    """Whatever the number of axes, and where small values stand beside large ones."""
    arrays = tuple(np.zeros((1,) * axes, np.int8) for axes in range(5))
    for given in (scaled(), (True, 1.0, True), arrays, (np.float32(1), (True,), np.int8(1))):
        held = held_bytes(given)
        assert held <= needed_bytes(numba.typeof(given)) <= held + 8 * 8


def test_what_has_no_fixed_size_is_refused() -> None:
    with pytest.raises(TypeError, match="no array, number or tuple"):
        Packed(keep_scaled, add_packed).call_with("text", 1.0)


def test_arguments_live_as_long_as_the_call() -> None:
    call = Packed(keep_scaled, add_packed).call_with(given := scaled(), 1.0)
    one = given.pair.one
    del given
    for _ in range(100):
        call()
    np.testing.assert_array_equal(one, [1000.0, 1100.0, 1200.0])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))])
def test_a_copy_works_on_the_copies_of_its_arguments(copied) -> None:
    given = scaled()
    call = Packed(keep_scaled, add_packed).call_with(given, 1.0)
    call()
    twin, twins = copied((call, given))
    twin()
    twin()
    np.testing.assert_array_equal(twins.pair.one, [30.0, 33.0, 36.0])
    np.testing.assert_array_equal(given.pair.one, [10.0, 11.0, 12.0])


def test_a_copy_looks_at_the_types_of_its_own_arguments() -> None:
    packed = Packed(keep_scaled, add_packed)
    packed.call_with(scaled(), 1.0)()
    singles = scaled(np.float32, whole=0)
    copy.deepcopy(packed).call_with(singles, 1.0)()
    np.testing.assert_array_equal(singles.pair.one, np.array([0.0, 1.0, 2.0], np.float32))


def test_a_kernel_takes_values_of_a_table_by_their_numbers() -> None:
    values = [scaled(whole=whole, is_on=whole != 3) for whole in range(5)]
    table = PackedTable(keep_scaled, values)
    add_chosen(table.places, values[0], np.array([4, 1, 3, 4]))
    for whole, times in enumerate((0, 1, 0, 0, 2)):
        expected = times * (np.arange(3.0) + 5.0 * whole)
        np.testing.assert_array_equal(values[whole].pair.one, expected)
    values[2].pair.two[:] = 7.0
    add_chosen(table.places, values[0], np.array([2]))
    np.testing.assert_array_equal(values[2].pair.one, [17.0, 17.0, 17.0])
