"""What follows a layer's matrix product, forward and backward.

Shapes: N samples, U units. A derivative is that of the loss.
"""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.jit import kernel

Floats = npt.NDArray[np.float32]


@kernel
def add_bias(outputs: Floats, bias: Floats) -> None:
    """Add `bias` [U] to every row of `outputs` [N, U]."""
    for row in range(outputs.shape[0]):
        for unit in range(outputs.shape[1]):
            outputs[row, unit] += bias[unit]


@kernel
def add_bias_relu(outputs: Floats, bias: Floats) -> None:
    """Turn `outputs` [N, U] into max(outputs + bias, 0); no number stays no number."""
    zero = np.float32(0.0)
    for row in range(outputs.shape[0]):
        for unit in range(outputs.shape[1]):
            value = outputs[row, unit] + bias[unit]
            outputs[row, unit] = zero if value <= zero else value


@kernel
def through_relu(derivatives: Floats, outputs: Floats, of_bias: Floats) -> None:
    """Turn `derivatives` [N, U] by a ReLU's `outputs` into those by its inputs.

    Their sum over samples is written to `of_bias` [U].
    """
    zero = np.float32(0.0)
    of_bias[:] = zero
    for row in range(outputs.shape[0]):
        for unit in range(outputs.shape[1]):
            value = derivatives[row, unit] if outputs[row, unit] > zero else zero
            derivatives[row, unit] = value
            of_bias[unit] += value


@kernel
def through_tanh(derivatives: Floats, outputs: Floats, of_bias: Floats) -> None:
    """As `through_relu`, for tanh: d tanh(x) / dx = 1 - tanh(x)**2."""
    one = np.float32(1.0)
    of_bias[:] = np.float32(0.0)
    for row in range(outputs.shape[0]):
        for unit in range(outputs.shape[1]):
            output = outputs[row, unit]
            value = derivatives[row, unit] * (one - output * output)
            derivatives[row, unit] = value
            of_bias[unit] += value


@kernel
def spread_values(slopes: Floats, weights: Floats, derivatives: Floats) -> None:
    """Write `derivatives` [N, U] by the inputs of a layer of one unit with `weights` [U].

    `slopes` [N] are those by its outputs.
    """
    for row in range(slopes.size):
        for unit in range(weights.size):
            derivatives[row, unit] = slopes[row] * weights[unit]
