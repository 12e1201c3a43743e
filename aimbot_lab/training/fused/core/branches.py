"""Probabilities of actions that consist of branches: choices, then Gaussians.

Inner loops run over samples, so that the processor takes several at a time.
"""

import numpy as np

from aimbot_lab.foundation.kernels.fast_math import any_exp, exp, log
from aimbot_lab.foundation.kernels.jit import late_called, late_inlined
from aimbot_lab.training.fused.core.arrays import Floats, Head, Noise, Whole

FORBIDDEN = np.float32(-1e8)  # a logit whose probability is exactly 0
ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
HALF_LOG_TAU = 0.9189385332046728  # log(2 pi) / 2


@late_called
def take_outputs(head: Head, bias: Floats, masks: Floats, starts: Whole) -> None:
    """Write logits and means, `bias` [L + C] added, and all that follows from the logits.

    `starts` [branches of choices + 1]: where each begins. With `masks` [M, N] (no rows where
    nothing is masked) a masked choice takes no part: its probability is 0.
    """
    for k in range(bias.size):
        row = head.logits[k]
        for n in range(row.size):
            row[n] = head.outputs[n, k] + bias[k]
    for k in range(masks.shape[0]):
        logits = head.logits[k]
        for n in range(logits.size):
            logits[n] = logits[n] if masks[k, n] > HALF else FORBIDDEN
    for branch in range(starts.size - 1):
        shift(head, branch, starts[branch], starts[branch + 1])
        normalize(head, branch, starts[branch], starts[branch + 1])


@late_inlined
def shift(head: Head, branch: int, first: int, last: int) -> None:
    """Shift a branch's logits so that the largest is 0."""
    largest = head.log_sums[branch]
    largest[:] = FORBIDDEN
    for k in range(first, last):
        logits = head.logits[k]
        for n in range(largest.size):
            largest[n] = max(largest[n], logits[n])
    for k in range(first, last):
        logits = head.logits[k]
        for n in range(largest.size):
            logits[n] = max(logits[n] - largest[n], FORBIDDEN)


@late_inlined
def normalize(head: Head, branch: int, first: int, last: int) -> None:
    """Write a branch's probabilities, log_sums and entropies from its shifted logits."""
    sums, entropies = head.log_sums[branch], head.entropies[branch]
    sums[:] = ZERO
    entropies[:] = ZERO
    for k in range(first, last):
        logits, probs = head.logits[k], head.probs[k]
        for n in range(sums.size):
            probs[n] = exp(logits[n])
            sums[n] += probs[n]
    for k in range(first, last):
        logits, probs = head.logits[k], head.probs[k]
        for n in range(sums.size):
            probs[n] /= sums[n]
            entropies[n] -= probs[n] * logits[n]
    for n in range(sums.size):
        sums[n] = log(sums[n])
        entropies[n] += sums[n]


@late_inlined
def log_probs_of_choices(head: Head, actions: Floats, starts: Whole) -> None:
    """Write `log_probs` of the choices in the first rows of `actions` [K, N]."""
    for branch in range(starts.size - 1):
        found, taken, sums = head.log_probs[branch], actions[branch], head.log_sums[branch]
        for n in range(found.size):
            found[n] = -sums[n]
        for k in range(starts[branch], starts[branch + 1]):
            logits, index = head.logits[k], np.float32(k - starts[branch])
            for n in range(found.size):
                found[n] += logits[n] if taken[n] == index else ZERO


@late_inlined
def log_probs_of_gaussians(head: Head, actions: Floats, starts: Whole, log_std: Floats) -> None:
    """Write `log_probs` of the columns of `actions` [K, N] that are no choices."""
    for c in range(log_std.size):
        branch = starts.size - 1 + c
        means, found, taken = head.logits[starts[-1] + c], head.log_probs[branch], actions[branch]
        inverse = any_exp(-log_std[c])
        constant = np.float32(-log_std[c] - HALF_LOG_TAU)
        for n in range(found.size):
            off = (taken[n] - means[n]) * inverse
            found[n] = constant - HALF * off * off


@late_inlined
def log_probs_of(head: Head, actions: Floats, starts: Whole, log_std: Floats) -> None:
    """Write the `log_probs` of `actions` [K, N]."""
    log_probs_of_choices(head, actions, starts)
    log_probs_of_gaussians(head, actions, starts, log_std)


@late_inlined
def choose(probs: Floats, n: int, chance: np.float32) -> int:
    """The first choice of sample `n` whose cumulated probability exceeds `chance`.

    Never one of probability 0. `probs` [choices, N].
    """
    total = ZERO
    for k in range(probs.shape[0]):
        total += probs[k, n]
    left, chosen = chance * total, 0
    for k in range(probs.shape[0]):
        if probs[k, n] > ZERO:
            chosen = k
            if left < probs[k, n]:
                break
            left -= probs[k, n]
    return chosen


@late_called
def choose_actions(
    head: Head, noise: Noise, actions: Floats, starts: Whole, log_std: Floats
) -> None:
    """Write `actions` [K, N], drawn from their distributions, and their `log_probs`."""
    for branch in range(starts.size - 1):
        probs = head.probs[starts[branch] : starts[branch + 1]]
        for n in range(actions.shape[1]):
            actions[branch, n] = choose(probs, n, noise.uniform[n, branch])
    for c in range(log_std.size):
        branch, deviation = starts.size - 1 + c, any_exp(log_std[c])
        for n in range(actions.shape[1]):
            actions[branch, n] = head.logits[starts[-1] + c, n] + deviation * noise.normal[n, c]
    log_probs_of(head, actions, starts, log_std)
