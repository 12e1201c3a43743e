"""The gradient of a minibatch of chunks, shared by threads."""

from typing import Any

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import kernel, late_called, late_inlined
from aimbot_lab.foundation.kernels.packed import stored
from aimbot_lab.foundation.kernels.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.arrays import (
    Batch,
    Doubles,
    Floats,
    KindArrays,
    Loss,
    Networks,
    Samples,
    ThreadWorkspace,
    Whole,
    Workspace,
)
from aimbot_lab.training.fused.core.heads import heads_forward
from aimbot_lab.training.fused.core.loss import differentiate
from aimbot_lab.training.fused.core.lstm import copy_state, take_states
from aimbot_lab.training.fused.core.network import (
    backward,
    forward,
    take_columns,
    take_shown,
)

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
    thread: ThreadWorkspace,
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

    Arguments: Networks, Batch, Lanes, WorkQueue, ThreadWorkspace. A piece has as many chunks as the
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
