"""Derivatives of PPO's loss by the outputs of actor and critic.

The same loss as `training.losses`, whose docstrings give the sources.
"""

import numpy as np

from aimbot_lab.foundation.kernels.fast_math import any_exp
from aimbot_lab.foundation.kernels.jit import late_called, late_inlined
from aimbot_lab.training.fused.core.arrays import (
    CLIPPED,
    DIVERGENCE,
    DUAL_CLIPPED,
    ENTROPY,
    POLICY,
    VALUE,
    Doubles,
    Floats,
    Head,
    Loss,
    Samples,
    Whole,
)
from aimbot_lab.training.fused.core.branches import HALF_LOG_TAU, ONE, ZERO, log_probs_of

TWO = np.float32(2.0)


@late_inlined
def objective(ratio: np.float32, advantage: np.float32, loss: Loss) -> tuple[np.float32, bool]:
    """(clipped objective of one ratio, whether it moves with that ratio)."""
    low, high = ONE - loss.clip, ONE + loss.clip
    free = advantage * ratio
    clipped = advantage * min(max(ratio, low), high)
    found = min(free, clipped)
    moves = bool(low <= ratio <= high or free < clipped)
    least = loss.dual_clip * advantage
    if loss.dual_clip > ZERO and advantage < ZERO and found < least:
        return least, False
    return found, moves


@late_inlined
def judge_action(head: Head, samples: Samples, loss: Loss, sums: Doubles, n: int) -> None:
    """Write `dloss_dlogp` of sample `n` and add to the sums of policy, clips and divergence."""
    branches, ratios = head.log_probs.shape[0], samples.old_log_probs.shape[0]
    advantage = (samples.advantages[n] - loss.mean) / loss.deviation
    whole = ZERO
    for r in range(ratios):
        last = branches if ratios == 1 else r + 1
        log_ratio = -samples.old_log_probs[r, n]
        for k in range(r, last):
            log_ratio += head.log_probs[k, n]
        whole += log_ratio
        ratio = any_exp(log_ratio)
        found, moves = objective(ratio, advantage, loss)
        push = -loss.share * advantage * ratio if moves else ZERO
        for k in range(r, last):
            head.dloss_dlogp[k, n] = push
        sums[POLICY] -= found
        sums[CLIPPED] += abs(ratio - ONE) > loss.clip
        bounded = loss.dual_clip > ZERO and advantage < ZERO and ratio > loss.dual_clip
        sums[DUAL_CLIPPED] += bounded
    sums[DIVERGENCE] += any_exp(whole) - ONE - whole


@late_inlined
def judge_value(head: Head, samples: Samples, loss: Loss, sums: Doubles, n: int) -> None:
    """Turn the value of sample `n` into the loss's derivative by it; add to the loss's sum."""
    value, moves = head.values[n, 0], True
    if loss.clip_value > ZERO:
        change = value - samples.old_values[n]
        kept = min(max(change, -loss.clip_value), loss.clip_value)
        value, moves = samples.old_values[n] + kept, kept == change
    off = value - samples.returns[n]
    sums[VALUE] += off * off
    head.values[n, 0] = TWO * loss.vf_coef * loss.share * off if moves else ZERO


@late_inlined
def push_choices(head: Head, actions: Floats, starts: Whole, bonus: np.float32) -> None:
    """Turn the choices' logits into derivatives, probability p: push (chosen - p) + bonus
    p (log p + entropy).
    """
    for branch in range(starts.size - 1):
        dloss_dlogp, taken = head.dloss_dlogp[branch], actions[branch]
        entropies, log_sums = head.entropies[branch], head.log_sums[branch]
        for k in range(starts[branch], starts[branch + 1]):
            logits, probs = head.logits[k], head.probs[k]
            index = np.float32(k - starts[branch])
            for n in range(dloss_dlogp.size):
                disorder = logits[n] - log_sums[n] + entropies[n]
                chosen = dloss_dlogp[n] if taken[n] == index else ZERO
                logits[n] = chosen + probs[n] * (bonus * disorder - dloss_dlogp[n])


@late_inlined
def push_gaussians(
    head: Head, actions: Floats, starts: Whole, log_std: Floats, of_log_std: Floats
) -> None:
    """Turn the means into derivatives; write those of the objective by `log_std` [C]."""
    for c in range(log_std.size):
        branch = starts.size - 1 + c
        means, dloss_dlogp, taken = (
            head.logits[starts[-1] + c],
            head.dloss_dlogp[branch],
            actions[branch],
        )
        inverse = any_exp(-log_std[c])
        total = ZERO
        for n in range(dloss_dlogp.size):
            off = (taken[n] - means[n]) * inverse
            total += dloss_dlogp[n] * (off * off - ONE)
            means[n] = dloss_dlogp[n] * off * inverse
        of_log_std[c] = total


@late_inlined
def judge_entropy(head: Head, log_std: Floats, sums: Doubles) -> None:
    """Add to the sum of the entropy loss, minus the entropy of each sample's whole action."""
    for branch in range(head.entropies.shape[0]):
        for n in range(head.values.shape[0]):
            sums[ENTROPY] -= head.entropies[branch, n]
    for c in range(log_std.size):
        sums[ENTROPY] -= (0.5 + HALF_LOG_TAU + log_std[c]) * head.values.shape[0]


@late_called
def differentiate(
    head: Head,
    samples: Samples,
    starts: Whole,
    loss: Loss,
    log_std: Floats,
    of_log_std: Floats,
    sums: Doubles,
) -> None:
    """Turn logits, means and values of `head` into the derivatives of the loss by them.

    Needs what `take_outputs` writes. Writes the derivative by `log_std` [C] to `of_log_std`, adds
    the losses of N samples to `sums` [6].
    """
    log_probs_of(head, samples.actions, starts, log_std)
    judge_entropy(head, log_std, sums)
    for n in range(head.values.shape[0]):
        judge_action(head, samples, loss, sums, n)
        judge_value(head, samples, loss, sums, n)
    bonus = loss.ent_coef * loss.share
    push_choices(head, samples.actions, starts, bonus)
    push_gaussians(head, samples.actions, starts, log_std, of_log_std)
    for c in range(log_std.size):
        of_log_std[c] -= bonus * np.float32(head.values.shape[0])
