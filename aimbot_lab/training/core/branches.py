"""Probabilities of actions that consist of branches: choices, then Gaussians.

Inner loops run over samples, so that the processor takes several at a time.
"""

import math

import numpy as np

from aimbot_lab.foundation.jit import inlined, kernel
from aimbot_lab.training.core.parts import Floats, Head, Whole

FORBIDDEN = np.float32(-1e8)  # a logit whose probability is exactly 0
ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


@kernel
def take_outputs(outputs: Floats, bias: Floats, head: Head, masks: Floats, starts: Whole) -> None:
    """Write the actor's `outputs` [N, L + C] plus `bias` [L + C] to the logits and means of `head`.

    Each branch's logits are shifted so that the largest is 0, and copied to `probs`. `starts`
    [branches of choices + 1]: where each begins. With `masks` [M, N] (no rows where nothing is
    masked) a masked choice takes no part, and gets the logit -1e8.
    """
    for n in range(outputs.shape[0]):
        for k in range(bias.size):
            head.logits[k, n] = outputs[n, k] + bias[k]
    for k in range(masks.shape[0]):
        logits = head.logits[k]
        for n in range(logits.size):
            logits[n] = logits[n] if masks[k, n] > HALF else FORBIDDEN
    for branch in range(starts.size - 1):
        largest = head.log_sums[branch]
        largest[:] = FORBIDDEN
        for k in range(starts[branch], starts[branch + 1]):
            logits = head.logits[k]
            for n in range(largest.size):
                largest[n] = max(largest[n], logits[n])
        for k in range(starts[branch], starts[branch + 1]):
            logits, probs = head.logits[k], head.probs[k]
            for n in range(largest.size):
                logits[n] = max(logits[n] - largest[n], FORBIDDEN)
                probs[n] = logits[n]


@inlined
def normalize(head: Head, starts: Whole) -> None:
    """Turn `probs` from exp(logits) into probabilities; write `log_sums` and `entropies`."""
    for branch in range(starts.size - 1):
        sums, entropies = head.log_sums[branch], head.entropies[branch]
        sums[:] = ZERO
        entropies[:] = ZERO
        for k in range(starts[branch], starts[branch + 1]):
            probs = head.probs[k]
            for n in range(sums.size):
                sums[n] += probs[n]
        for k in range(starts[branch], starts[branch + 1]):
            probs, logits = head.probs[k], head.logits[k]
            for n in range(sums.size):
                probs[n] /= sums[n]
                entropies[n] -= probs[n] * logits[n]
        for n in range(sums.size):
            sums[n] = np.float32(math.log(sums[n]))
            entropies[n] += sums[n]


@inlined
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


@inlined
def log_probs_of_gaussians(head: Head, actions: Floats, starts: Whole, log_std: Floats) -> None:
    """Write `log_probs` of the columns of `actions` [K, N] that are no choices."""
    for c in range(log_std.size):
        branch = starts.size - 1 + c
        means, found, taken = head.logits[starts[-1] + c], head.log_probs[branch], actions[branch]
        inverse = np.float32(math.exp(-log_std[c]))
        constant = np.float32(-log_std[c] - HALF_LOG_TAU)
        for n in range(found.size):
            off = (taken[n] - means[n]) * inverse
            found[n] = constant - HALF * off * off


@inlined
def log_probs_of(head: Head, actions: Floats, starts: Whole, log_std: Floats) -> None:
    """Write all that `head` holds of `actions` [K, N], from logits and probs = exp(logits)."""
    normalize(head, starts)
    log_probs_of_choices(head, actions, starts)
    log_probs_of_gaussians(head, actions, starts, log_std)
