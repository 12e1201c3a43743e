"""exp and tanh in single precision for kernels, free of calls and branches.

A loop over them is done several elements at a time, which one over `math.exp` is not. Relative
errors are below 2e-7.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from aimbot_lab.foundation.jit import inlined

# Adding this rounds to a whole number n, which the lowest bits of the sum then hold.
ROUNDING = np.float32(1.5 * 2**23)
PER_LOG_2 = np.float32(1.4426950408889634)
# log 2 in two parts, of which the first has few bits: its multiples are exact.
LOG_2_HIGH, LOG_2_LOW = np.float32(0.693359375), np.float32(0.6931471805599453 - 0.693359375)
LEAST_EXPONENT = np.float32(-87.0)  # exp of less counts as 0
MOST = np.float32(20.0)  # tanh of half of it is 1 in single precision
ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
T2, T3, T4, T5, T6, T7 = (np.float32(1.0 / f) for f in (2, 6, 24, 120, 720, 5040))


@intrinsic
def _power_of_bits(typing: Any, rounded: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(32)
        bits = builder.bitcast(values[0], word)
        exponent = builder.shl(builder.add(bits, word(127)), word(23))
        return builder.bitcast(exponent, ir.FloatType())

    return types.float32(types.float32), generate


def _plain_power(rounded: np.float32) -> np.float32:
    return np.float32(2.0) ** (rounded - ROUNDING)


_COMPILED = not vars(numba.config)["DISABLE_JIT"]
_power: Any = _power_of_bits if _COMPILED else _plain_power  # 2**n of n + ROUNDING


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
    power, over_one = _split(max(x, LEAST_EXPONENT))
    value = power + power * over_one
    return ZERO if x < LEAST_EXPONENT else value


@inlined
def tanh(x: np.float32) -> np.float32:
    """The hyperbolic tangent, (e**2x - 1) / (e**2x + 1)."""
    power, over_one = _split(min(max(x + x, -MOST), MOST))
    less_one = (power - ONE) + power * over_one
    return less_one / (less_one + TWO)
