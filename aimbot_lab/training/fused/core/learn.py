"""The gradient of a minibatch, shared by threads."""

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.threads.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.gather import gather
from aimbot_lab.training.fused.core.loss import differentiate
from aimbot_lab.training.fused.core.net import backward, forward
from aimbot_lab.training.fused.core.parts import (
    Batch,
    Desk,
    Doubles,
    Floats,
    Lanes,
    Loss,
    Networks,
    Turn,
    Whole,
)

USED_LANES, PIECES = range(2)  # numbers of a turn: how many lanes and pieces there are


@called
def learn_piece(
    networks: Networks, desk: Desk, rows: Floats, indices: Whole, loss: Loss, sums: Doubles
) -> None:
    """Write the gradient of the samples `indices` [N] of `rows` [S, W] to `desk`'s slopes.

    Adds their losses to `sums` [5]. The desk's room must be for N samples.
    """
    room, slopes, net = desk.room, desk.slopes, networks.net
    gather(rows, indices, room.samples)
    forward(networks, room)
    differentiate(
        room.head, room.samples, networks.starts, loss, net.log_std, slopes.net.log_std, sums
    )
    backward(networks, room, slopes)


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
def learn_lanes(networks: Networks, batch: Batch, lanes: Lanes, turn: Turn, desk: Desk) -> None:
    """Write to the lanes of a turn the sums over their pieces of `batch`; as one of its threads.

    A piece has as many samples as the desk's room. They go to the lanes one after the other, like
    cards, and a lane to the thread that takes it; the desk is used up. A worker goes on as long
    as there is work in time.
    """
    worker, count = desk.number - 1, desk.room.ones.shape[0]
    while worker < 0 or begins(turn.words, worker, desk.looks):
        loss = loss_of(batch.loss)
        lane = add(turn.taken, 0, 1)
        while lane < turn.numbers[USED_LANES]:
            gradient, sums = lanes.gradients[lane], lanes.sums[lane]
            gradient[:] = 0.0
            sums[:] = 0.0
            for piece in range(lane, turn.numbers[PIECES], turn.numbers[USED_LANES]):
                own = batch.indices[piece * count : (piece + 1) * count]
                learn_piece(networks, desk, batch.rows, own, loss, sums)
                for k in range(gradient.size):
                    gradient[k] += desk.slopes.flat[k]
            lane = add(turn.taken, 0, 1)
        if worker < 0:
            wait_for_workers(turn.words, desk.looks)
            return
        finish(turn.words, worker)
