"""The gradient of a minibatch of chunks, shared by threads."""

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.threads.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.gather import gather
from aimbot_lab.training.fused.core.learn import PIECES, USED_LANES, loss_of
from aimbot_lab.training.fused.core.loss import differentiate
from aimbot_lab.training.fused.core.lstm import remember, remember_backward
from aimbot_lab.training.fused.core.memory_parts import (
    ChunkBatch,
    MemoryThread,
    MemoryWorkspace,
    RememberingNetworks,
)
from aimbot_lab.training.fused.core.net import backward, forward
from aimbot_lab.training.fused.core.parts import Doubles, Lanes, Loss, Whole, WorkQueue


@inlined
def gather_chunks(batch: ChunkBatch, chunks: Whole, workspace: MemoryWorkspace) -> None:
    """Write the samples of `chunks` [R] to the workspace, step by step, and what they begin with.

    The states of the first step are those of the rollout, 0 where an episode begins.
    """
    sequence, indices = workspace.sequence, workspace.indices
    places, rows = batch.states.shape[0], batch.states.shape[1]
    length, count = batch.starts.shape[0] // places, chunks.size
    for k in range(count):
        row, place = chunks[k] // places, chunks[k] % places
        for step in range(length):
            at = place * length + step
            indices[step * count + k] = at * rows + row
            sequence.kept[step * count + k] = 1.0 - batch.starts[at, row]
        kept, state = sequence.kept[k], batch.states[place, row]
        for unit in range(state.shape[1]):
            sequence.hidden_before[k, unit] = state[0, unit] * kept
            sequence.cells_before[k, unit] = state[1, unit] * kept
    gather(batch.rows, indices, workspace.samples)


@called
def learn_chunks_of(
    whole: RememberingNetworks,
    thread: MemoryThread,
    batch: ChunkBatch,
    chunks: Whole,
    loss: Loss,
    sums: Doubles,
) -> None:
    """Write the gradient of the samples of `chunks` [R] to the thread's gradients.

    Adds their losses to `sums` [5]. The thread's arrays must be for R chunks.
    """
    workspace, gradients, networks = thread.workspace, thread.gradients, whole.networks
    gather_chunks(batch, chunks, thread.memory)
    remember(whole, thread.memory)
    forward(networks, workspace)
    differentiate(
        workspace.head,
        workspace.samples,
        networks.starts,
        loss,
        networks.net.log_std,
        gradients.net.log_std,
        sums,
    )
    backward(networks, workspace, gradients)
    remember_backward(whole, thread.memory, thread.of_memory, workspace.gradients[0])


@kernel
def learn_chunk_lanes(
    whole: RememberingNetworks,
    batch: ChunkBatch,
    lanes: Lanes,
    queue: WorkQueue,
    thread: MemoryThread,
) -> None:
    """What `learn_lanes` does, with pieces of whole chunks."""
    worker, count = thread.thread_id - 1, thread.memory.sequence.cells.shape[0]
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
                    gradient[k] += thread.gradients.flat[k]
            lane = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread.spin_limit)
            return
        finish(queue.sync_flags, worker)
