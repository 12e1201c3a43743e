"""exp, log and tanh in single precision for kernels, free of calls and branches.

A loop over them is done several elements at a time, which one over `math.exp` is not. Relative
errors are below 2e-7.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from aimbot_lab.foundation.kernels.jit import inlined

# Adding this rounds to a whole number n, which the lowest bits of the sum then hold.
ROUNDING = np.float32(1.5 * 2**23)
PER_LOG_2 = np.float32(1.4426950408889634)
# log 2 in two parts, of which the first has few bits: its multiples are exact.
LOG_2_HIGH, LOG_2_LOW = np.float32(0.693359375), np.float32(0.6931471805599453 - 0.693359375)
MIN_EXPONENT = np.float32(-87.0)  # exp of less counts as 0
MAX_EXPONENT = np.float32(88.3)
INFINITE = np.float32(np.inf)
MOST = np.float32(20.0)  # tanh of half of it is 1 in single precision
ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
MIN_MANTISSA_BITS = 0x3F3504F3  # of the square root of 1/2
S3, S5, S7, S9 = (np.float32(2.0 / k) for k in (3, 5, 7, 9))
T2, T3, T4, T5, T6, T7 = (np.float32(1.0 / f) for f in (2, 6, 24, 120, 720, 5040))


@intrinsic
def _power_of_bits(typing: Any, rounded: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(32)
        bits = builder.bitcast(values[0], word)
        exponent = builder.shl(builder.add(bits, word(127)), word(23))
        return builder.bitcast(exponent, ir.FloatType())

    return types.float32(types.float32), generate


@intrinsic
def _split_of_bits(typing: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(32)
        bits = builder.bitcast(values[0], word)
        over_least = builder.sub(bits, word(MIN_MANTISSA_BITS))
        exponent = builder.ashr(over_least, word(23))
        mantissa = builder.sub(bits, builder.shl(exponent, word(23)))
        parts = builder.sitofp(exponent, ir.FloatType()), builder.bitcast(mantissa, ir.FloatType())
        return context.make_tuple(builder, signature.return_type, parts)

    pair: Any = types.UniTuple
    return pair(types.float32, 2)(types.float32), generate


def _plain_split(x: np.float32) -> tuple[np.float32, np.float32]:
    mantissa, exponent = np.frexp(x)
    if mantissa < np.sqrt(0.5):
        mantissa, exponent = mantissa + mantissa, exponent - 1
    return np.float32(exponent), np.float32(mantissa)


def _plain_power(rounded: np.float32) -> np.float32:
    return np.float32(2.0) ** (rounded - ROUNDING)


_COMPILED = not vars(numba.config)["DISABLE_JIT"]
_power: Any = _power_of_bits if _COMPILED else _plain_power  # 2**n of n + ROUNDING
_halve: Any = _split_of_bits if _COMPILED else _plain_split  # (n, m): 2**n m, 1/2 <= m**2 < 2


@inlined
def _split(x: np.float32) -> tuple[np.float32, np.float32]:
    """(2**n, exp(r) - 1) with x = n log 2 + r and |r| <= log(2) / 2; r's by Taylor's series."""
    rounded = x * PER_LOG_2 + ROUNDING
    n = rounded - ROUNDING
    r = (x - n * LOG_2_HIGH) - n * LOG_2_LOW
    series = T2 + r * (T3 + r * (T4 + r * (T5 + r * (T6 + r * T7))))
    return _power(rounded), r + r * r * series


@inlined
def exp(x: np.float32) -> np.float32:
    """e**x for x <= 88; exactly 0 for x < -87."""
    power, over_one = _split(max(x, MIN_EXPONENT))
    value = power + power * over_one
    return ZERO if x < MIN_EXPONENT else value


@inlined
def any_exp(x: np.float32) -> np.float32:
    """e**x for every x: infinite from 88.3 on, a little before single precision ends."""
    value = exp(MAX_EXPONENT if x > MAX_EXPONENT else x)
    return INFINITE if x > MAX_EXPONENT else value


@inlined
def log(x: np.float32) -> np.float32:
    """The natural logarithm of a normal positive number, log m + n log 2.

    log m = 2 artanh(s) with s = (m - 1) / (m + 1), by its series. The absolute error is below
    1e-7 for 1/2 <= x <= 2, the relative one elsewhere.
    """
    n, m = _halve(x)
    s = (m - ONE) / (m + ONE)
    square = s * s
    series = square * (S3 + square * (S5 + square * (S7 + square * S9)))
    value: np.float32 = n * LOG_2_HIGH + (n * LOG_2_LOW + (s * series + (s + s)))
    return value


@inlined
def tanh(x: np.float32) -> np.float32:
    """The hyperbolic tangent, (e**2x - 1) / (e**2x + 1)."""
    power, over_one = _split(min(max(x + x, -MOST), MOST))
    less_one = (power - ONE) + power * over_one
    return less_one / (less_one + TWO)
