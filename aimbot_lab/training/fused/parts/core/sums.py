"""Sums over the rows of a piece."""

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.training.fused.core.parts import Floats


@inlined
def sum_of_rows(rows: Floats, total: Floats) -> None:
    """Write to `total` [W] the sum of `rows` [N, W]."""
    total[:] = np.float32(0.0)
    for n in range(rows.shape[0]):
        row = rows[n]
        for k in range(total.size):
            total[k] += row[k]


@inlined
def add_rows(rows: Floats, total: Floats) -> None:
    """Add `rows` [N, W] to `total` [N, W]."""
    for n in range(rows.shape[0]):
        row, out = rows[n], total[n]
        for k in range(out.size):
            out[k] += row[k]
