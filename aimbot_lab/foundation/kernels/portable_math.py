"""Sine, cosine and logarithm in double precision for kernels, out of operations that IEEE 754
defines to the last bit: the same bits on every processor, compiled or not, whatever its libm.

Measured against 200-bit arithmetic: `sin_cos` is within 0.77 units in the last place for
|x| <= 1e6, `log` within 0.81 for normal positive numbers. The polynomials are minimax, found by
Remez's exchange in 250-bit arithmetic; the reductions follow Cody and Waite, "Software Manual for
the Elementary Functions", 1980.
"""

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from aimbot_lab.foundation.kernels.jit import inlined

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
