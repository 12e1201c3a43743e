"""Actor and critic forward and backward, for N samples at a time, without Python in between."""

from aimbot_lab.foundation.blas import multiply
from aimbot_lab.foundation.jit import inlined, kernel
from aimbot_lab.training.core.branches import choose_actions, take_outputs
from aimbot_lab.training.core.gather import gather
from aimbot_lab.training.core.layers import activate, spread, through_activation
from aimbot_lab.training.core.loss import differentiate
from aimbot_lab.training.core.parts import (
    Chances,
    Desk,
    Doubles,
    Drawn,
    Floats,
    Lanes,
    Loss,
    Networks,
    Room,
    Slopes,
    Turn,
    Whole,
)


@inlined
def forward(networks: Networks, room: Room) -> None:
    """From the inputs in `room` to all that its head holds before an action is known."""
    net, sgemm = networks.net, networks.sgemm
    multiply(sgemm, room.samples.inputs, net.layers[0].weights.T, room.outputs[0])
    activate(room.outputs[0], net.layers[0].bias, networks.relu)
    for number in range(1, len(net.layers)):
        weights, below, out = (
            net.layers[number].weights,
            room.outputs[number - 1],
            room.outputs[number],
        )
        half, units = below.shape[1] // 2, out.shape[1] // 2
        multiply(sgemm, below[:, :half], weights[:units].T, out[:, :units])
        multiply(sgemm, below[:, half:], weights[units:].T, out[:, units:])
        activate(out, net.layers[number].bias, networks.relu)
    top = room.outputs[-1]
    half = top.shape[1] // 2
    multiply(sgemm, net.action, top[:, :half].T, room.head.logits)
    multiply(sgemm, top[:, half:], net.value.T, room.head.values)
    for n in range(room.head.values.shape[0]):
        room.head.values[n, 0] += net.value_bias[0]
    take_outputs(room.head, net.action_bias[0], room.samples.masks, networks.starts)


@inlined
def backward(networks: Networks, room: Room, slopes: Slopes) -> None:
    """From the derivatives by the head's logits, means and values to those by all weights."""
    net, sgemm, head, of = networks.net, networks.sgemm, room.head, slopes.net
    top, of_top = room.outputs[-1], room.slopes[-1]
    half = top.shape[1] // 2
    multiply(sgemm, head.logits, top[:, :half], of.action)
    multiply(sgemm, room.ones.T, head.logits.T, of.action_bias)
    multiply(sgemm, head.values.T, top[:, half:], of.value)
    multiply(sgemm, head.logits.T, net.action, of_top[:, :half])
    spread(head.values[:, 0], net.value, of_top[:, half:])
    for number in range(len(net.layers) - 1, 0, -1):
        above, below = room.slopes[number], room.outputs[number - 1]
        through_activation(above, room.outputs[number], of.layers[number].bias, networks.relu)
        half, units = below.shape[1] // 2, above.shape[1] // 2
        weights, of_weights = net.layers[number].weights, of.layers[number].weights
        of_below = room.slopes[number - 1]
        multiply(sgemm, above[:, :units].T, below[:, :half], of_weights[:units])
        multiply(sgemm, above[:, units:].T, below[:, half:], of_weights[units:])
        multiply(sgemm, above[:, :units], weights[:units], of_below[:, :half])
        multiply(sgemm, above[:, units:], weights[units:], of_below[:, half:])
    through_activation(room.slopes[0], room.outputs[0], of.layers[0].bias, networks.relu)
    multiply(sgemm, room.slopes[0].T, room.samples.inputs, of.layers[0].weights)


@inlined
def learn_piece(
    networks: Networks, desk: Desk, rows: Floats, indices: Whole, loss: Loss, sums: Doubles
) -> None:
    """Write the gradient of the samples `indices` [N] of `rows` [S, W] to `desk`'s slopes.

    Adds their losses to `sums` [5]. The desk's room must be for N samples.
    """
    room, slopes, net = desk.room, desk.slopes, networks.net
    head, of = room.head, slopes.net
    gather(rows, indices, room.samples)
    forward(networks, room)
    differentiate(head, room.samples, networks.starts, loss, net.log_std, of.log_std, sums)
    of.value_bias[0] = 0.0
    for n in range(head.values.shape[0]):
        of.value_bias[0] += head.values[n, 0]
    backward(networks, room, slopes)


@kernel
def learn_lanes(
    networks: Networks,
    desk: Desk,
    rows: Floats,
    indices: Whole,
    loss: Loss,
    lanes: Lanes,
    turn: Turn,
) -> None:
    """Write to every lane whose `turn` it is the sums over its pieces of `indices` of `rows`.

    A piece has as many samples as the desk's room, and `indices` are full pieces. They go to the
    lanes one after the other, like cards. `rows` [S, W]; the desk is used up.
    """
    count, number = desk.room.ones.shape[0], lanes.sums.shape[0]
    for lane in range(turn.first, number, turn.step):
        gradient, sums = lanes.gradients[lane], lanes.sums[lane]
        gradient[:] = 0.0
        sums[:] = 0.0
        for piece in range(lane, indices.size // count, number):
            own = indices[piece * count : (piece + 1) * count]
            learn_piece(networks, desk, rows, own, loss, sums)
            for k in range(gradient.size):
                gradient[k] += desk.slopes.flat[k]


@kernel
def act_piece(
    networks: Networks, room: Room, features: Floats, chances: Chances, drawn: Drawn
) -> None:
    """Write to `drawn` actions for `features` [N, F + M]; `room`, for N samples, is used up."""
    samples = room.samples
    size = samples.inputs.shape[1]
    for n in range(features.shape[0]):
        for column in range(size):
            samples.inputs[n, column] = features[n, column]
        for column in range(samples.masks.shape[0]):
            samples.masks[column, n] = features[n, size + column]
    forward(networks, room)
    choose_actions(room.head, chances, samples.actions, networks.starts, networks.net.log_std)
    branches, ratios = samples.actions.shape[0], drawn.log_probs.shape[1]
    for n in range(features.shape[0]):
        drawn.values[n, 0] = room.head.values[n, 0]
        for k in range(ratios):
            drawn.log_probs[n, k] = 0.0
        for k in range(branches):
            drawn.actions[n, k] = samples.actions[k, n]
            drawn.log_probs[n, min(k, ratios - 1)] += room.head.log_probs[k, n]
