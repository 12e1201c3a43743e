"""One step of Adam over all weights at once (Kingma and Ba 2015), as torch computes it."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.foundation.kernels.matmul import dot

Floats = npt.NDArray[np.float32]
ZERO = np.float32(0.0)


class AdamStep(NamedTuple):
    """Numbers of one step, in single precision."""

    scale: np.float32  # factor on the gradient, below 1 where its norm is clipped
    fresh_mean: np.float32  # 1 - beta1
    kept_square: np.float32  # beta2
    fresh_square: np.float32  # 1 - beta2
    size: np.float32  # learning rate / (1 - beta1**t)
    root: np.float32  # sqrt(1 - beta2**t)
    epsilon: np.float32


@kernel
def square_of(gradient: Floats) -> float:
    """The square of the norm of `gradient` [P]."""
    return float(dot(gradient, gradient))


@kernel
def adam_step(
    weights: Floats, gradient: Floats, means: Floats, squares: Floats, step: AdamStep
) -> None:
    """Move `weights` [P] against `gradient` [P]; the running `means` and `squares` [P] follow."""
    for k in range(weights.size):
        slope = gradient[k] * step.scale
        mean = means[k] + step.fresh_mean * (slope - means[k])
        square = squares[k] * step.kept_square + step.fresh_square * slope * slope
        means[k] = mean
        squares[k] = square
        move = step.size * mean / (np.sqrt(square) / step.root + step.epsilon)
        weights[k] -= move if mean != ZERO else ZERO  # without epsilon 0 / 0, where nothing moves
