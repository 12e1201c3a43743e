"""Advantages and targets of samples that an older policy made."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
MAX_RATIO = 1.0  # rho-bar and c-bar


class Steps(NamedTuple):
    """What happened in T steps of N rows, and what the present policy makes of it."""

    rewards: Floats  # [T, N] where an episode was cut off, with the discounted value of its end
    ends: Bools  # [T, N] whether an episode ended in the step, by its rules or cut off
    values: Floats  # [T, N] of the observations
    last_values: Floats  # [N] of the observations after the last step
    ratios: Floats  # [T, N] probability of the action, the present policy's over the older one's


class Corrected(NamedTuple):
    """What to learn from."""

    advantages: Floats  # [T, N]
    targets: Floats  # [T, N] of the values


def v_trace(steps: Steps, *, gamma: float, gae_lambda: float) -> Corrected:
    """Advantages and targets by V-trace (Espeholt et al. 2018, eq. 1, c of remark 2).

    With rho = min(1, ratio) and c = lambda min(1, ratio): v_t = V_t + rho_t d_t +
    gamma c_t (v_t+1 - V_t+1) where d_t = r_t + gamma V_t+1 - V_t, and the advantage is
    d_t + gamma lambda (v_t+1 - V_t+1). It bears no rho of its own: PPO's objective weighs it with
    the ratio. With equal policies both are those of GAE.
    """
    rho = np.minimum(steps.ratios, np.float32(MAX_RATIO))
    advantages, above = np.empty_like(steps.values), np.empty_like(steps.values)
    next_values, next_above = steps.last_values, np.zeros_like(steps.last_values)
    for t in range(len(steps.rewards) - 1, -1, -1):
        goes_on = np.float32(gamma) * ~steps.ends[t]
        delta = steps.rewards[t] + goes_on * next_values - steps.values[t]
        later = goes_on * np.float32(gae_lambda) * next_above
        advantages[t], above[t] = delta + later, rho[t] * (delta + later)
        next_values, next_above = steps.values[t], above[t]
    return Corrected(advantages, steps.values + above)
