"""Kernels that find their arguments in memory."""

import copy
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

from aimbot_lab.foundation.kernels.jit import (
    Packed,
    PackedTable,
    inlined,
    kernel,
    stored,
    stored_like,
    unpacked,
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
def add_packed(address: int, kind: Any) -> None:
    add_to_first(*unpacked(address, kind))


@kernel
def add_stored(address: int, kind: Any) -> None:
    add_to_first(*stored(address, kind))


@kernel
def add_chosen(address: int, kind: Any) -> None:
    places, example, chosen = stored(address, kind)
    for number in chosen:
        add_to_first(stored_like(places[number], example), 1.0)


@inlined
def sum_of(pairs: Any, number: int) -> float:
    pair, total = pairs[number], 0.0
    for k in range(pair.one.shape[0]):
        for column in range(pair.one.shape[1]):
            total += pair.one[k, column] * pair.two[0, column]
    return total


@kernel
def write_sums(address: int, kind: Any) -> None:
    pairs, out = stored(address, kind)
    for number in range(out.size):
        out[number] = sum_of(pairs, number)


both_ways = pytest.mark.parametrize("work", [add_packed, add_stored])


def scaled(dtype: type = np.float64, *, whole: int = 2, is_on: bool = True) -> Scaled:
    table = np.arange(6.0).reshape(2, 3)
    return Scaled(Pair(np.zeros(3, dtype), np.arange(3).astype(dtype)), table, whole, is_on)


@both_ways
def test_every_call_works_on_the_arrays_as_they_are_which_live_as_long_as_it(work: Any) -> None:
    call = Packed(work).call_with(given := scaled(), 2.0)
    (one, two), table = given.pair, given.table
    del given
    for calls in range(1, 101):
        call()
        np.testing.assert_array_equal(one, np.array([10.0, 12.0, 14.0]) * calls)
    table[1, 2] = 0.0
    two[:] = 1.0
    call()
    np.testing.assert_array_equal(one, [1002.0, 1202.0, 1402.0])


@both_ways
def test_each_call_has_arguments_of_its_own(work: Any) -> None:
    packed, one, two = (Packed(work), scaled(whole=0), scaled(whole=1, is_on=False))
    calls = [packed.call_with(one, 1.0), packed.call_with(two, 5.0), packed.call_with(one, 3.0)]
    for call in calls:
        call()
    np.testing.assert_array_equal(one.pair.one, [0.0, 4.0, 8.0])
    np.testing.assert_array_equal(two.pair.one, [0.0, 0.0, 0.0])


class Mixed(NamedTuple):
    flag: bool
    numbers: tuple[Any, ...]
    arrays: tuple[np.ndarray, ...]
    empty: tuple[()]


@kernel
def copy_mixed(address: int, kind: Any) -> None:
    mixed, out = unpacked(address, kind)
    sums = out
    single, small, large = mixed.numbers
    sums[0], sums[1], sums[2] = single, small, large
    sums[3] = 1.0 if mixed.flag else 0.0
    zero, one, four = mixed.arrays
    sums[4], sums[5], sums[6] = zero[()], one[1], four[0, 1, 0, 1]


def test_numbers_of_every_size_and_arrays_of_any_number_of_axes_arrive() -> None:
    four = np.arange(16, dtype=np.uint8).reshape(2, 2, 2, 2).T  # neither order of axes
    numbers = np.float32(0.1), np.int8(-3), np.uint64(1 << 60)
    mixed = Mixed(True, numbers, (np.array(2.5), np.array([1, -7], np.int16), four), ())
    out = np.zeros(7)
    Packed(copy_mixed).call_with(mixed, out)()
    expected = [np.float32(0.1), -3, 1 << 60, 1.0, 2.5, -7, four[0, 1, 0, 1]]
    np.testing.assert_array_equal(out, np.array(expected, np.float64))


def test_tuples_left_in_memory_are_taken_by_number() -> None:
    random, out = np.random.default_rng(0), np.zeros(3)
    pairs = tuple(Pair(random.random((2, k)), random.random((1, k))) for k in (4, 1, 0))
    call = Packed(write_sums).call_with(pairs, out)
    for _ in range(2):
        call()
        np.testing.assert_allclose(out, [(one * two).sum() for one, two in pairs])
        pairs[1].two[:] = 7.0


@both_ways
def test_what_has_no_fixed_size_is_refused(work: Any) -> None:
    with pytest.raises(TypeError, match="no array, number or tuple"):
        Packed(work).call_with("text", 1.0)


@both_ways
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))])
def test_a_copy_works_on_the_copies_of_its_arguments(copied, work: Any) -> None:
    given = scaled()
    call = Packed(work).call_with(given, 1.0)
    call()
    twin, twins = copied((call, given))
    twin()
    twin()
    np.testing.assert_array_equal(twins.pair.one, [30.0, 33.0, 36.0])
    np.testing.assert_array_equal(given.pair.one, [10.0, 11.0, 12.0])


@both_ways
def test_a_copy_looks_at_the_types_of_its_own_arguments(work: Any) -> None:
    packed = Packed(work)
    packed.call_with(scaled(), 1.0)()
    singles = scaled(np.float32, whole=0)
    copy.deepcopy(packed).call_with(singles, 1.0)()
    np.testing.assert_array_equal(singles.pair.one, np.array([0.0, 1.0, 2.0], np.float32))


def test_a_kernel_takes_values_of_a_table_by_their_numbers() -> None:
    values = [scaled(whole=whole, is_on=whole != 3) for whole in range(5)]
    table, chosen = PackedTable(values), np.array([4, 1, 3, 4])
    call = Packed(add_chosen).call_with(table.places, values[0], chosen)
    call()
    for whole, times in enumerate((0, 1, 0, 0, 2)):
        expected = times * (np.arange(3.0) + 5.0 * whole)
        np.testing.assert_array_equal(values[whole].pair.one, expected)
    values[2].pair.two[:] = 7.0
    chosen[:] = 2
    call()
    np.testing.assert_array_equal(values[2].pair.one, [68.0, 68.0, 68.0])
