"""Random numbers for kernels: one 64-bit stream per row, kept in an array of the state.

SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014):
the state steps by a fixed odd constant, the output is a bijective mix of it.
"""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.jit import inlined, kernel

UInt64Array = npt.NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
U30, U27, U31, U11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@inlined
def mix64(value: np.uint64) -> np.uint64:
    """A 64-bit word in which every bit depends on every bit of `value`."""
    value = (value ^ (value >> U30)) * MIX_1
    value = (value ^ (value >> U27)) * MIX_2
    return value ^ (value >> U31)


@inlined
def uniform(streams: UInt64Array, row: int) -> float:
    """The next number of stream `row` in [0, 1), with 53 random bits; advances the stream."""
    streams[row] += GOLDEN
    return (mix64(streams[row]) >> U11) * TO_UNIT


@inlined
def uniform_index(streams: UInt64Array, row: int, count: int) -> int:
    """A whole number in [0, count), drawn from stream `row`."""
    return min(int(uniform(streams, row) * count), count - 1)


@inlined
def weighted_index(streams: UInt64Array, row: int, weights: npt.NDArray[np.float64]) -> int:
    """An index of `weights` [K] drawn in proportion to them; never one of weight 0."""
    total = 0.0
    for k in range(weights.size):
        total += weights[k]
    left = uniform(streams, row) * total
    chosen = 0
    for k in range(weights.size):
        if weights[k] > 0.0:
            chosen = k
            if left < weights[k]:
                break
            left -= weights[k]
    return chosen


@inlined
def counted_uniform(key: np.uint64, row: int, count: int) -> float:
    """A number in [0, 1) that depends on `key`, `row` and `count` alone."""
    word = mix64(key ^ mix64(np.uint64(row) * GOLDEN + MIX_1))
    return (mix64(word + np.uint64(count) * GOLDEN) >> U11) * TO_UNIT


@kernel
def seed_streams(streams: UInt64Array, seed: np.uint64, first: int) -> None:
    """Start stream `row` of `streams` [B] at a point that depends on `seed` and `first` + row."""
    for row in range(streams.size):
        number = np.uint64(first + row)
        streams[row] = mix64(mix64(seed + GOLDEN) ^ mix64(number * GOLDEN + MIX_1))
