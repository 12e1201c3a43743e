"""The gradient of a minibatch, shared by threads."""

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.kernels.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.gather import gather
from aimbot_lab.training.fused.core.loss import differentiate
from aimbot_lab.training.fused.core.net import backward, forward
from aimbot_lab.training.fused.core.parts import (
    Batch,
    Doubles,
    Floats,
    Lanes,
    Loss,
    Networks,
    ThreadWorkspace,
    Whole,
    WorkQueue,
)

USED_LANES, PIECES = range(2)  # numbers of the work at hand: how many lanes and pieces there are


@called
def learn_piece(
    networks: Networks,
    thread_workspace: ThreadWorkspace,
    rows: Floats,
    indices: Whole,
    loss: Loss,
    sums: Doubles,
) -> None:
    """Write the gradient of the samples `indices` [N] of `rows` [S, W] to the thread's gradients.

    Adds their losses to `sums` [6]. The workspace must be for N samples.
    """
    workspace, gradients, net = thread_workspace.workspace, thread_workspace.gradients, networks.net
    gather(rows, indices, workspace.samples)
    forward(networks, workspace)
    differentiate(
        workspace.head,
        workspace.samples,
        networks.starts,
        loss,
        net.log_std,
        gradients.net.log_std,
        sums,
    )
    backward(networks, workspace, gradients)


@inlined
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
def learn_lanes(
    networks: Networks,
    batch: Batch,
    lanes: Lanes,
    queue: WorkQueue,
    thread_workspace: ThreadWorkspace,
) -> None:
    """Write to the lanes the sums over their pieces of `batch`, as one of the threads.

    A piece has as many samples as the workspace holds. Pieces go to the lanes in turn, and a lane
    to the thread that takes it; the workspace is overwritten. A worker goes on as long as there is
    work in time.
    """
    worker, count = thread_workspace.thread_id - 1, thread_workspace.workspace.ones.shape[0]
    while worker < 0 or begins(queue.sync_flags, worker, thread_workspace.spin_limit):
        loss = loss_of(batch.loss)
        lane = add(queue.taken, 0, 1)
        while lane < queue.numbers[USED_LANES]:
            gradient, sums = lanes.gradients[lane], lanes.sums[lane]
            gradient[:] = 0.0
            sums[:] = 0.0
            for piece in range(lane, queue.numbers[PIECES], queue.numbers[USED_LANES]):
                own = batch.indices[piece * count : (piece + 1) * count]
                learn_piece(networks, thread_workspace, batch.rows, own, loss, sums)
                for k in range(gradient.size):
                    gradient[k] += thread_workspace.gradients.flat[k]
            lane = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread_workspace.spin_limit)
            return
        finish(queue.sync_flags, worker)
