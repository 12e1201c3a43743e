"""Random numbers for actions that depend on a row's number and a step, and on no other row."""

import math

import numpy as np

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.foundation.kernels.portable_math import log, sin_cos
from aimbot_lab.foundation.kernels.rng import GOLDEN, MIX_1, TO_UNIT, U11, UInt64Array, mix64
from aimbot_lab.training.fused.core.arrays import Floats

U40 = np.uint64(40)
TO_UNIT_32 = 1.0 / 16777216.0  # 2**-24, below 1 in single precision, too
TAU = 2.0 * math.pi


@kernel
def fill_noise(uniform: Floats, normal: Floats, key: UInt64Array) -> None:
    """Write `uniform` [B, K] in [0, 1) and `normal` [B, C] (Box and Muller 1958).

    `key` [3]: the seed of the rollout, the number of the first row, and the step.
    """
    choices, columns = uniform.shape[1], normal.shape[1]
    first = key[2] * np.uint64(choices + 2 * columns)
    for row in range(uniform.shape[0]):
        word = mix64(key[0] ^ mix64((key[1] + np.uint64(row)) * GOLDEN + MIX_1)) + first * GOLDEN
        for k in range(choices):
            uniform[row, k] = (mix64(word) >> U40) * TO_UNIT_32
            word += GOLDEN
        for c in range(columns):
            length = math.sqrt(-2.0 * log(1.0 - (mix64(word) >> U11) * TO_UNIT))
            _, cosine = sin_cos(TAU * ((mix64(word + GOLDEN) >> U11) * TO_UNIT))
            normal[row, c] = length * cosine
            word += GOLDEN + GOLDEN
