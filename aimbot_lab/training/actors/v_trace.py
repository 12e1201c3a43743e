"""Advantages of samples that an older policy made."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
MAX_RATIO = 2.0
"""rho-bar and c-bar. At 1, where the paper has them, ratios below 1 shorten the traces and none
lengthens them: one update apart by 5 % a step."""


class Steps(NamedTuple):
    """What happened in T steps of N rows, and what the present policy makes of it."""

    rewards: Floats  # [T, N] where an episode was cut off, with the discounted value of its end
    ends: Bools  # [T, N] whether an episode ended in the step, by its rules or cut off
    values: Floats  # [T, N] of the observations
    last_values: Floats  # [N] of the observations after the last step
    ratios: Floats  # [T, N] probability of the action, the present policy's over the older one's


def v_trace(steps: Steps, *, gamma: float, gae_lambda: float) -> Floats:
    """Advantages [T, N] by V-trace; the targets of the values are the values plus these.

    (Espeholt et al. 2018, eq. 1, c of remark 2.) With rho = min(MAX_RATIO, ratio) and d_t = r_t +
    gamma V_t+1 - V_t, a_t = rho_t (d_t + gamma lambda a_t+1). That is v_t - V_t, and at lambda 1
    also the advantage of section 4.2, which bears rho. With equal policies it is GAE's.
    """
    rho = np.minimum(steps.ratios, np.float32(MAX_RATIO))
    advantages = np.empty_like(steps.values)
    next_values, later = steps.last_values, np.zeros_like(steps.last_values)
    for t in range(len(steps.rewards) - 1, -1, -1):
        goes_on = np.float32(gamma) * ~steps.ends[t]
        delta = steps.rewards[t] + goes_on * next_values - steps.values[t]
        advantages[t] = rho[t] * (delta + goes_on * np.float32(gae_lambda) * later)
        next_values, later = steps.values[t], advantages[t]
    return advantages
