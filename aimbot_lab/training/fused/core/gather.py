"""Samples of a minibatch from the rollout they were drawn from."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.training.fused.core.parts import Floats, Samples


@inlined
def spread(row: Floats, start: int, columns: Floats, n: int) -> int:
    """Write `row` from `start` on to sample `n` of `columns` [C, N]; where the next ones start."""
    for column in range(columns.shape[0]):
        columns[column, n] = row[start + column]
    return start + columns.shape[0]


@inlined
def gather(rows: Floats, indices: npt.NDArray[np.int64], piece: Samples) -> None:
    """Write the samples `indices` [N] of `rows` [S, W] to `piece`.

    A row has the fields of Samples one after the other, so that a sample lies in one place.
    """
    size = piece.inputs.shape[1]
    for n in range(indices.size):
        row = rows[indices[n]]
        for column in range(size):
            piece.inputs[n, column] = row[column]
        start = spread(row, size, piece.masks, n)
        start = spread(row, start, piece.actions, n)
        start = spread(row, start, piece.old_log_probs, n)
        piece.advantages[n] = row[start]
        piece.returns[n] = row[start + 1]
        piece.old_values[n] = row[start + 2]
