"""What kernels of the last layer share: its results, and what the loss is made of."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

POLICY, VALUE, ENTROPY, CLIPPED, DIVERGENCE = range(5)  # of the sums over a minibatch
SUMS = 5


class Samples(NamedTuple):
    """What is known of each of N samples."""

    inputs: Floats  # [N, F]
    masks: Floats  # [M, N] 1 where a choice is allowed; M is 0 without masks
    actions: Floats  # [K, N] choices as whole numbers, then the continuous columns
    old_log_probs: Floats  # [R, N] one for the whole action, or one for each branch
    advantages: Floats  # [N]
    returns: Floats  # [N]
    old_values: Floats  # [N]


class Head(NamedTuple):
    """Outputs of actor and critic for N samples, and room for what is derived from them.

    K branches, choices before Gaussians; L logits of all choices, then C means.
    """

    logits: Floats  # [L + C, N] shifted so that each branch's largest is 0; means as they are
    probs: Floats  # [L, N] logits, then exp(logits), then the choices' probabilities
    values: Floats  # [N]
    log_sums: Floats  # [branches of choices, N] log of the sum of a branch's exp(logits)
    entropies: Floats  # [branches of choices, N]
    log_probs: Floats  # [K, N] of the action taken
    pushes: Floats  # [K, N] derivative of the loss by log_probs


class Loss(NamedTuple):
    """What the loss is made of, in single precision."""

    share: np.float32  # 1 / samples of the minibatch
    mean: np.float32  # of the advantages, to be taken off
    deviation: np.float32  # of the advantages, to divide by
    clip: np.float32
    dual_clip: np.float32  # 0 for none
    clip_value: np.float32  # 0 for none
    ent_coef: np.float32
    vf_coef: np.float32
