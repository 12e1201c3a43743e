"""The gradient of a minibatch of chunks, shared by threads."""

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, kernel
from aimbot_lab.foundation.kernels.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.gather import spread
from aimbot_lab.training.fused.core.learn import PIECES, USED_LANES, loss_of
from aimbot_lab.training.fused.core.loss import differentiate
from aimbot_lab.training.fused.core.parts import Doubles, Lanes, Loss, Whole, WorkQueue
from aimbot_lab.training.fused.parts.core.arrays import (
    ChunkBatch,
    PartsNetworks,
    PartsThread,
    PartsWorkspace,
)
from aimbot_lab.training.fused.parts.core.encoders import encode, encode_backward, take_inputs
from aimbot_lab.training.fused.parts.core.heads import heads_backward, heads_forward
from aimbot_lab.training.fused.parts.core.lstm import remember, remember_backward
from aimbot_lab.training.fused.parts.core.states import copy_state, give_states, take_states


@called
def gather_chunks(
    whole: PartsNetworks,
    batch: ChunkBatch,
    chunks: Whole,
    back: int,
    workspace: PartsWorkspace,
) -> None:
    """Write the samples of the chunks that lie `back` before `chunks` [R], step by step.

    Of a row that has none so far back in this rollout it is the first.
    """
    places, rows = batch.states.shape[0], batch.states.shape[1]
    length, count = batch.starts.shape[0] // places, chunks.size
    samples, kept = workspace.samples, workspace.memories[0].kept
    for step in range(length):
        for k in range(count):
            row, place = chunks[k] // places, max(chunks[k] % places - back, 0)
            at, n = place * length + step, step * count + k
            kept[n] = 1.0 - batch.starts[at, row]
            seen = batch.rows[at * rows + row]
            take_inputs(whole, workspace, seen, n)
            start = spread(seen, whole.layout.shown, samples.masks, n)
            start = spread(seen, start, samples.actions, n)
            start = spread(seen, start, samples.old_log_probs, n)
            samples.advantages[n] = seen[start]
            samples.returns[n] = seen[start + 1]
            samples.old_values[n] = seen[start + 2]


@called
def warm_up(
    whole: PartsNetworks, batch: ChunkBatch, chunks: Whole, workspace: PartsWorkspace
) -> None:
    """Carry what `chunks` [R] begin with: the kept states, after `warm_up` chunks where asked."""
    places, carried = batch.states.shape[0], workspace.carried
    for k in range(chunks.size):
        place = max(chunks[k] % places - batch.warm_up, 0)
        copy_state(batch.states[place, chunks[k] // places], carried[k])
    for back in range(batch.warm_up, 0, -1):
        gather_chunks(whole, batch, chunks, back, workspace)
        give_states(whole, workspace)
        encode(whole, workspace)
        remember(whole, workspace)
        for k in range(chunks.size):
            if chunks[k] % places >= back:
                take_states(whole, workspace, k)


@called
def learn_chunks_of(
    whole: PartsNetworks,
    thread: PartsThread,
    batch: ChunkBatch,
    chunks: Whole,
    loss: Loss,
    sums: Doubles,
) -> None:
    """Write the gradient of the samples of `chunks` [R] to the thread's gradient.

    Adds their losses to `sums` [6]. The thread's arrays must be for R chunks.
    """
    workspace, net, of = thread.workspace, whole.net, thread.of
    if whole.layout.memories > 0:
        warm_up(whole, batch, chunks, workspace)
    gather_chunks(whole, batch, chunks, 0, workspace)
    give_states(whole, workspace)
    encode(whole, workspace)
    remember(whole, workspace)
    heads_forward(whole, workspace)
    head, samples = workspace.head, workspace.samples
    differentiate(head, samples, whole.starts, loss, net.log_std, of.log_std, sums)
    heads_backward(whole, workspace, of)
    remember_backward(whole, workspace, of)
    encode_backward(whole, workspace, of)


@kernel
def learn_chunk_lanes(
    whole: PartsNetworks,
    batch: ChunkBatch,
    lanes: Lanes,
    queue: WorkQueue,
    thread: PartsThread,
) -> None:
    """What `learn_lanes` does, with pieces of whole chunks."""
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
                learn_chunks_of(whole, thread, batch, own, loss, sums)
                for k in range(gradient.size):
                    gradient[k] += thread.gradient[k]
            lane = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread.spin_limit)
            return
        finish(queue.sync_flags, worker)
