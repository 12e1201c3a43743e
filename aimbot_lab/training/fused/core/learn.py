"""Learning: derivatives of PPO's loss, gradients by a team of threads, and Adam's step.

Adam (Kingma and Ba 2015) goes over all weights at once, as torch computes it. The loss is that of
`training.algorithms.ppo_update`, whose docstrings give the sources.
"""

from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.jit import kernel, late_called, late_inlined, stored
from aimbot_lab.foundation.kernels.lanes import any_exp, dot
from aimbot_lab.foundation.kernels.threads import add, begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.arrays import (
    CLIPPED,
    DIVERGENCE,
    DUAL_CLIPPED,
    ENTROPY,
    ONE,
    POLICY,
    TWO,
    VALUE,
    ZERO,
    Batch,
    Doubles,
    Floats,
    Head,
    KindArrays,
    LearnThread,
    Loss,
    Networks,
    Samples,
    Whole,
    Workspace,
)
from aimbot_lab.training.fused.core.layers import copy_state, take_states
from aimbot_lab.training.fused.core.network import (
    HALF_LOG_TAU,
    backward,
    forward,
    heads_forward,
    log_probs_of,
    take_columns,
    take_shown,
)


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


USED_LANES, PIECES = range(2)  # numbers of the work at hand: how many lanes and pieces there are


@late_called
def gather(
    networks: Networks,
    batch: Batch,
    chunks: Whole,
    back: int,
    into: tuple[Samples, tuple[KindArrays, ...], Floats],
) -> None:
    """Write the samples of the chunks that lie `back` before `chunks` [R], step by step.

    Of a row that has none so far back in this rollout it is the first. A row of the rollout has the
    fields of Samples one after the other, so that a sample lies in one place. `into`: samples,
    units of each kind, and 0 where an episode begins.
    """
    rows, length = batch.states.shape[1], batch.length
    samples, kinds, kept = into
    for step in range(length):
        for k in range(chunks.size):
            at, n = chunks[k] - back * length * rows, step * chunks.size + k
            if at < 0:
                at = chunks[k] % rows
            at += step * rows
            if networks.layout.memories > 0:
                kept[n] = 1.0 - batch.starts[at]
            seen = batch.rows[at]
            start = take_shown(networks, samples, kinds, seen, n)
            start = take_columns(seen, start, samples.actions, n)
            start = take_columns(seen, start, samples.old_log_probs, n)
            samples.advantages[n] = seen[start]
            samples.returns[n] = seen[start + 1]
            samples.old_values[n] = seen[start + 2]


@late_called
def run(networks: Networks, batch: Batch, chunks: Whole, workspace: Workspace) -> None:
    """Bring `chunks` [R] to what actor and critic are given.

    A memory begins with the kept states, and where asked with chunks before these, to warm up.
    """
    steps, carried = batch.states.shape[1] * batch.length, workspace.carried
    if networks.layout.memories > 0:
        for k in range(chunks.size):
            place = max(chunks[k] // steps - batch.warm_up, 0)
            copy_state(batch.states[place, chunks[k] % batch.states.shape[1]], carried[k])
    into = workspace.samples, workspace.kinds, workspace.memories[0].kept
    for back in range(batch.warm_up, -1, -1):
        gather(networks, batch, chunks, back, into)
        forward(networks, workspace)
        for k in range(chunks.size):
            if back > 0 and chunks[k] >= back * steps:
                take_states(networks, workspace, k)


@late_called
def learn_piece(
    networks: Networks,
    thread: LearnThread,
    batch: Batch,
    chunks: Whole,
    loss: Loss,
    sums: Doubles,
) -> None:
    """Write the gradient of the samples of `chunks` [R] to the thread's gradient.

    Adds their losses to `sums` [6]. The thread's arrays must be for R chunks.
    """
    workspace, net, of = thread.workspace, networks.net, thread.of
    run(networks, batch, chunks, workspace)
    heads_forward(networks, workspace)
    head, samples = workspace.head, workspace.samples
    differentiate(head, samples, networks.starts, loss, net.log_std, of.log_std, sums)
    backward(networks, workspace, of)


@late_inlined
def loss_of(numbers: Floats) -> Loss:
    """The loss with these fields."""
    return Loss(
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        numbers[4],
        numbers[5],
        numbers[6],
        numbers[7],
    )


@kernel
def learn_packed(address: int, kind: Any) -> None:
    """Write to the lanes the sums over their pieces, as one of the threads; for a `PackedCall`.

    Arguments: Networks, Batch, LaneSums, PieceQueue, LearnThread. A piece has as many chunks as the
    workspace holds. Pieces go to the lanes in turn, and a lane to the thread that takes it; the
    workspace is overwritten. A worker goes on as long as there is work in time.
    """
    networks, batch, lanes, queue, thread = stored(address, kind)
    worker, count = thread.thread_id - 1, thread.workspace.carried.shape[0]
    while worker < 0 or begins(queue.sync_flags, worker, thread.spin_limit):
        loss = loss_of(batch.loss)
        lane = add(queue.taken, 0, 1)
        while lane < queue.numbers[USED_LANES]:
            gradient, sums = lanes.gradients[lane], lanes.sums[lane]
            gradient[:] = 0.0
            sums[:] = 0.0
            for piece in range(lane, queue.numbers[PIECES], queue.numbers[USED_LANES]):
                own = batch.chunks[piece * count : (piece + 1) * count]
                learn_piece(networks, thread, batch, own, loss, sums)
                for k in range(gradient.size):
                    gradient[k] += thread.gradient[k]
            lane = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread.spin_limit)
            return
        finish(queue.sync_flags, worker)


class AdamStep(NamedTuple):
    """Numbers of one step, in single precision."""

    scale: np.float32  # factor on the gradient, below 1 where its norm is clipped
    fresh_mean: np.float32  # 1 - beta1
    kept_square: np.float32  # beta2
    fresh_square: np.float32  # 1 - beta2
    size: np.float32  # learning rate / (1 - beta1**t)
    root: np.float32  # sqrt(1 - beta2**t)
    epsilon: np.float32


@kernel
def square_of(gradient: Floats) -> float:
    """The square of the norm of `gradient` [P]."""
    return float(dot(gradient, gradient))


@kernel
def adam_step(
    weights: Floats, gradient: Floats, means: Floats, squares: Floats, step: AdamStep
) -> None:
    """Move `weights` [P] against `gradient` [P]; the running `means` and `squares` [P] follow."""
    for k in range(weights.size):
        slope = gradient[k] * step.scale
        mean = means[k] + step.fresh_mean * (slope - means[k])
        square = squares[k] * step.kept_square + step.fresh_square * slope * slope
        means[k] = mean
        squares[k] = square
        move = step.size * mean / (np.sqrt(square) / step.root + step.epsilon)
        weights[k] -= move if mean != ZERO else ZERO  # without epsilon 0 / 0, where nothing moves
