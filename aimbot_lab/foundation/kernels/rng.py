"""Random numbers for kernels, the same on every machine: streams, normal deviates, parameters.

**Streams.** One 64-bit stream per row, kept in an array of the state: SplitMix64 (Steele, Lea and
Flood, "Fast splittable pseudorandom number generators", 2014), whose state steps by a fixed odd
constant and whose output is a bijective mix of it.

**Sine, cosine and logarithm** in double precision consist of operations that IEEE 754 defines to
the last bit: the same bits on every processor, compiled or not, whatever its libm. Measured
against 200-bit arithmetic: `sin_cos` is within 0.77 units in the last place for |x| <= 1e6, `log`
within 0.81 for normal positive numbers. The polynomials are minimax, found by Remez's exchange in
250-bit arithmetic; the reductions follow Cody and Waite, "Software Manual for the Elementary
Functions", 1980.

**Parameters** of an episode are constants, or drawn by a sampler. A draw depends on the sampler's
seed, the row's number and that of the episode in it, and on nothing else, so that samplers never
disturb what else is drawn, and each other as little. A world gives NamedTuples of its own: its
state has `parameters` [B, P], `sampler_key` [1], the seed of samplers that have none of their own,
and `episode` [B]; its tables have the arrays of `foundation.settings`, `bounds` [P, 2] and
`whole` [P], what each parameter takes.
"""

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.foundation.settings import CONSTANT, GAUSSIAN, UNIFORM

PER_QUARTER = 2.0 / math.pi
ROUNDING = 1.5 * 2.0**52  # adding and subtracting this rounds to a whole number
# Pi / 2 in three parts, of which the first two have 33 bits: their multiples are exact.
QUARTER_1, QUARTER_2, QUARTER_3 = (
    1.5707963267341256,
    6.077100506303966e-11,
    2.0222662487959506e-21,
)
# sin r = r + r z P(z) and cos r = 1 - z / 2 + z z P(z), z = r r up to (pi / 4)**2.
S1, S2, S3, S4, S5, S6 = (
    -0.16666666666666632,
    0.00833333333332237,
    -0.00019841269829771164,
    2.755731367866455e-06,
    -2.5050755961166208e-08,
    1.5896666490423456e-10,
)
C1, C2, C3, C4, C5, C6 = (
    0.0416666666666666,
    -0.0013888888888874064,
    2.480158728944346e-05,
    -2.755731434065324e-07,
    2.0875721622879172e-09,
    -1.1359559287318112e-11,
)
# 2 artanh s = 2 s + s z P(z), z = s s.
L1, L2, L3, L4, L5, L6, L7 = (
    0.6666666666666735,
    0.3999999999941109,
    0.28571428743262967,
    0.2222219847595885,
    0.18183569741120048,
    0.1531390321569902,
    0.1479750799557229,
)
# log 2 in two parts, of which the first has 32 bits.
LOG_2_HIGH, LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # of the square root of 1/2
FRACTION_BITS = 52  # of a double


@intrinsic
def _split_of_bits(typing: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(64)
        bits = builder.bitcast(values[0], word)
        over_least = builder.sub(bits, word(ROOT_HALF_BITS))
        exponent = builder.ashr(over_least, word(FRACTION_BITS))
        mantissa = builder.sub(bits, builder.shl(exponent, word(FRACTION_BITS)))
        number = ir.DoubleType()
        parts = builder.sitofp(exponent, number), builder.bitcast(mantissa, number)
        return context.make_tuple(builder, signature.return_type, parts)

    pair: Any = types.UniTuple
    return pair(types.float64, 2)(types.float64), generate


def _plain_split(x: float) -> tuple[float, float]:
    mantissa, exponent = math.frexp(x)
    if mantissa < math.sqrt(0.5):
        mantissa, exponent = mantissa + mantissa, exponent - 1
    return float(exponent), mantissa


_COMPILED = not vars(numba.config)["DISABLE_JIT"]
_split: Any = _split_of_bits if _COMPILED else _plain_split  # (n, m): 2**n m, 1/2 <= m**2 < 2


@inlined
def sin_cos(x: float) -> tuple[float, float]:
    """Sine and cosine of `x` rad, together little more than one of them.

    x = n pi / 2 + r + rest, where `rest` is what r does not hold. From 1e6 rad on the reduction
    wears out: the values are those of some angle up to 1e15, and no sine and cosine far beyond.
    """
    n = (x * PER_QUARTER + ROUNDING) - ROUNDING
    far = x - n * QUARTER_1
    less = n * QUARTER_2
    near = far - less
    rest = (far - near) - less
    least = n * QUARTER_3
    r = near - least
    rest += (near - r) - least
    r = min(max(r, -1.0), 1.0)
    z = r * r
    odd = z * (S1 + z * (S2 + z * (S3 + z * (S4 + z * (S5 + z * S6)))))
    sine = r + (r * odd + rest * (1.0 - 0.5 * z))
    even = z * (C1 + z * (C2 + z * (C3 + z * (C4 + z * (C5 + z * C6)))))
    half = 0.5 * z
    main = 1.0 - half
    cosine = main + (((1.0 - main) - half) + (z * even - r * rest))
    quarter = n - 4.0 * np.floor(0.25 * n)  # 0 to 3
    turned = (quarter == 1.0) | (quarter == 3.0)
    along, across = (cosine, sine) if turned else (sine, cosine)
    below = quarter >= 2.0
    behind = (quarter == 1.0) | (quarter == 2.0)
    return -along if below else along, -across if behind else across


@inlined
def log(x: float) -> float:
    """The natural logarithm of a normal positive number.

    log m = f - f f / 2 + s (f f / 2 + 2 artanh(s) / s - 2) with f = m - 1 and s = f / (2 + f).
    """
    n, m = _split(x)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = z * (L1 + z * (L2 + z * (L3 + z * (L4 + z * (L5 + z * (L6 + z * L7))))))
    half = 0.5 * f * f
    value: float = n * LOG_2_HIGH - ((half - (s * (half + series) + n * LOG_2_LOW)) - f)
    return value


def whole_power(base: float, exponent: int) -> float:
    """`base` to a whole power that is not negative, by squaring: products alone."""
    power = 1.0
    while exponent:
        if exponent & 1:
            power *= base
        base *= base
        exponent >>= 1
    return power


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


LEAST = 2.0**-53  # keeps a logarithm finite


@inlined
def draw_parameters(state: Any, tables: Any, row: int, number: int) -> None:
    """Write the numbers in force for the episode that begins in `row`, which draws as `number`."""
    for k in range(state.parameters.shape[1]):
        if tables.sampler[k] == CONSTANT:
            state.parameters[row, k] = tables.sampler_values[k, 0]
        else:
            value = sampled(state, tables, row, k, number)
            value = min(max(value, tables.bounds[k, 0]), tables.bounds[k, 1])
            state.parameters[row, k] = np.rint(value) if tables.whole[k] else value


@inlined
def sampled(state: Any, tables: Any, row: int, k: int, number: int) -> float:
    """What the sampler of parameter `k` draws for this episode of `row`."""
    key = mix64(state.sampler_key[0] + np.uint64(k))
    if tables.sampler_seeded[k]:
        key = mix64(tables.sampler_seed[k])
    first = counted_uniform(key, number, 2 * state.episode[row])
    second = counted_uniform(key, number, 2 * state.episode[row] + 1)
    if tables.sampler[k] == UNIFORM:
        low, high = tables.sampler_values[k, 0], tables.sampler_values[k, 1]
        length = interval_length(low, high, tables.whole[k])
        return at_length(low, high, first * length, tables.whole[k])
    if tables.sampler[k] == GAUSSIAN:
        # Box and Muller, "A note on the generation of random normal deviates", 1958.
        _, cosine = sin_cos(2.0 * math.pi * second)
        normal = math.sqrt(-2.0 * log(first + LEAST)) * cosine
        return float(tables.sampler_values[k, 0] + tables.sampler_values[k, 1] * normal)
    return in_ranges(tables, k, first)


@inlined
def in_ranges(tables: Any, k: int, share: float) -> float:
    """The value at `share` of the way through all intervals laid end to end.

    Intervals that are all without length are drawn alike.
    """
    count = tables.sampler_range_count[k]
    total = 0.0
    for index in range(count):
        low, high = tables.sampler_ranges[k, index, 0], tables.sampler_ranges[k, index, 1]
        total += interval_length(low, high, tables.whole[k])
    if total == 0.0:
        return float(tables.sampler_ranges[k, min(int(share * count), count - 1), 0])
    left = share * total
    for index in range(count):
        low, high = tables.sampler_ranges[k, index, 0], tables.sampler_ranges[k, index, 1]
        length = interval_length(low, high, tables.whole[k])
        if left < length or index == count - 1:
            return at_length(low, high, left, tables.whole[k])
        left -= length
    return float(tables.sampler_ranges[k, 0, 0])


@inlined
def interval_length(low: float, high: float, whole: bool) -> float:
    """Length of an interval; how many whole numbers it holds, where `whole`."""
    return np.floor(high) - np.ceil(low) + 1.0 if whole else high - low


@inlined
def at_length(low: float, high: float, length: float, whole: bool) -> float:
    """The value `length` into an interval; the whole number there, where `whole`."""
    if whole:
        return float(min(np.ceil(low) + np.floor(length), np.floor(high)))
    return low + min(length, high - low)
