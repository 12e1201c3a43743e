"""What follows a layer's matrix product, forward and backward, and sums over rows.

Shapes: N samples, U units. Gradients are those of the loss.
"""

import numpy as np

from aimbot_lab.foundation.kernels.fast_math import tanh
from aimbot_lab.foundation.kernels.jit import late_inlined
from aimbot_lab.training.fused.core.arrays import Floats

ZERO, ONE = np.float32(0.0), np.float32(1.0)


@late_inlined
def activate(outputs: Floats, bias: Floats, relu: bool) -> None:
    """Add `bias` [U] to the first U columns of `outputs` and take ReLU or tanh; NaN stays NaN."""
    for row in range(outputs.shape[0]):
        if relu:
            for unit in range(bias.size):
                value = outputs[row, unit] + bias[unit]
                outputs[row, unit] = ZERO if value <= ZERO else value
        else:
            for unit in range(bias.size):
                outputs[row, unit] = tanh(outputs[row, unit] + bias[unit])


@late_inlined
def through_activation(gradients: Floats, outputs: Floats, of_bias: Floats, relu: bool) -> None:
    """Turn `gradients` [N, U] by `outputs` into those by what was activated.

    Their sum over samples is written to `of_bias` [U].
    """
    of_bias[:] = ZERO
    for row in range(outputs.shape[0]):
        if relu:
            for unit in range(outputs.shape[1]):
                value = gradients[row, unit] if outputs[row, unit] > ZERO else ZERO
                gradients[row, unit] = value
                of_bias[unit] += value
        else:
            for unit in range(outputs.shape[1]):
                value = gradients[row, unit] * (ONE - outputs[row, unit] * outputs[row, unit])
                gradients[row, unit] = value
                of_bias[unit] += value


@late_inlined
def spread(gradients: Floats, weights: Floats, out: Floats) -> None:
    """Write to `out` [N, U] the gradients by the inputs of one unit with `weights` [U].

    `gradients` [N] are those by its output.
    """
    for row in range(out.shape[0]):
        for unit in range(out.shape[1]):
            out[row, unit] = gradients[row] * weights[unit]


@late_inlined
def sum_of_rows(rows: Floats, total: Floats) -> None:
    """Write to `total` [W] the sum of `rows` [N, W]."""
    total[:] = ZERO
    for n in range(rows.shape[0]):
        row = rows[n]
        for k in range(total.size):
            total[k] += row[k]


@late_inlined
def add_rows(rows: Floats, total: Floats) -> None:
    """Add `rows` [N, W] to `total` [N, W]."""
    for n in range(rows.shape[0]):
        row, out = rows[n], total[n]
        for k in range(out.size):
            out[k] += row[k]


@late_inlined
def turn(weights: Floats, out: Floats) -> None:
    """Write `weights` to `out` with rows and columns exchanged; `out` may have more of both."""
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            out[column, row] = weights[row, column]
