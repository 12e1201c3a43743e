"""Actions drawn from their distributions."""

import math

import numpy as np

from aimbot_lab.foundation.jit import kernel
from aimbot_lab.training.core.branches import log_probs_of
from aimbot_lab.training.core.parts import Floats, Head, Whole


@kernel
def choose(
    head: Head, chances: Floats, noise: Floats, actions: Floats, starts: Whole, log_std: Floats
) -> None:
    """Write `actions` [K, N] and their `log_probs`.

    `chances` [N, branches of choices] are uniform in [0, 1), `noise` [N, C] standard normal.
    A choice is the first whose cumulated probability exceeds its chance, and never one of
    probability 0.
    """
    for branch in range(starts.size - 1):
        first, last = starts[branch], starts[branch + 1]
        for n in range(head.values.size):
            total = np.float32(0.0)
            for k in range(first, last):
                total += head.probs[k, n]
            left, chosen = chances[n, branch] * total, 0
            for k in range(first, last):
                if head.probs[k, n] > np.float32(0.0):
                    chosen = k - first
                    if left < head.probs[k, n]:
                        break
                    left -= head.probs[k, n]
            actions[branch, n] = chosen
    for c in range(log_std.size):
        branch, deviation = starts.size - 1 + c, np.float32(math.exp(log_std[c]))
        for n in range(head.values.size):
            actions[branch, n] = head.logits[starts[-1] + c, n] + deviation * noise[n, c]
    log_probs_of(head, actions, starts, log_std)
