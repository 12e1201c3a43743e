"""Actions of ML-Agents as those of a world."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.jit import kernel


@kernel
def write_actions(
    discrete: npt.NDArray[np.int32],
    continuous: npt.NDArray[np.float32],
    middle: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    limit: np.float32,
    actions: npt.NDArray[np.float32],
) -> None:
    """Write `actions` [n, branches + C]: `discrete` [n, branches], then `continuous` [n, C].

    Continuous numbers are clipped to plus or minus `limit`; -1 and 1 stand for `middle` - `half`
    and `middle` + `half` [C]; NaN stays NaN.
    """
    rows, count = discrete.shape
    for branch in range(count):
        for row in range(rows):
            actions[row, branch] = np.float32(discrete[row, branch])
    for column in range(middle.size):
        for row in range(rows):
            number = continuous[row, column]
            if number < -limit:
                number = -limit
            elif number > limit:
                number = limit
            number *= half[column]
            if middle[column] != np.float32(0.0):  # keeps the sign of zero
                number += middle[column]
            actions[row, count + column] = number
