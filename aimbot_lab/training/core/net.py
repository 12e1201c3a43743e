"""Actor and critic forward and backward, for N samples at a time, without Python in between."""

from aimbot_lab.foundation.jit import inlined, kernel
from aimbot_lab.foundation.matmul import dot, multiply
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


@kernel
def turn_weights(networks: Networks) -> None:
    """Bring `networks.turned` up to date."""
    net, turned = networks.net, networks.turned
    for number in range(1, len(net.layers)):
        weights, out = net.layers[number].weights, turned.layers[number]
        for half in range(2):
            for below in range(weights.shape[1]):
                for unit in range(weights.shape[2]):
                    out[half, unit, below] = weights[half, below, unit]
    for k in range(net.action.shape[0]):
        for unit in range(net.action.shape[1]):
            turned.action[unit, k] = net.action[k, unit]


@inlined
def forward(networks: Networks, room: Room) -> None:
    """From the inputs in `room` to all that its head holds before an action is known."""
    net, head = networks.net, room.head
    multiply(room.samples.inputs, net.layers[0].weights[0], room.outputs[0])
    activate(room.outputs[0], net.layers[0].bias, networks.relu)
    for number in range(1, len(net.layers)):
        weights = net.layers[number].weights
        below, out = room.outputs[number - 1], room.outputs[number]
        half, units = below.shape[1] // 2, out.shape[1] // 2
        multiply(below[:, :half], weights[0], out[:, :units])
        multiply(below[:, half:], weights[1], out[:, units:])
        activate(out, net.layers[number].bias, networks.relu)
    top = room.outputs[-1]
    half = top.shape[1] // 2
    multiply(top[:, :half], networks.turned.action, head.outputs)
    for n in range(head.values.shape[0]):
        head.values[n, 0] = dot(top[n, half:], net.value) + net.value_bias[0]
    take_outputs(head, net.action_bias, room.samples.masks, networks.starts)


@inlined
def backward(networks: Networks, room: Room, slopes: Slopes) -> None:
    """From the derivatives by the head's logits, means and values to those by all weights."""
    net, head, of = networks.net, room.head, slopes.net
    top, of_top = room.outputs[-1], room.slopes[-1]
    half = top.shape[1] // 2
    multiply(head.logits, top[:, :half], of.action)
    for k in range(of.action_bias.size):
        of.action_bias[k] = dot(head.logits[k], room.ones)
    multiply(head.values.T, top[:, half:], of.value.reshape((1, half)))
    of.value_bias[0] = dot(head.values[:, 0], room.ones)
    multiply(head.logits.T, net.action, of_top[:, :half])
    spread(head.values[:, 0], net.value, of_top[:, half:])
    for number in range(len(net.layers) - 1, 0, -1):
        above, below = room.slopes[number], room.outputs[number - 1]
        through_activation(above, room.outputs[number], of.layers[number].bias, networks.relu)
        half, units = below.shape[1] // 2, above.shape[1] // 2
        of_weights, turned = of.layers[number].weights, networks.turned.layers[number]
        of_below = room.slopes[number - 1]
        multiply(below[:, :half].T, above[:, :units], of_weights[0])
        multiply(below[:, half:].T, above[:, units:], of_weights[1])
        multiply(above[:, :units], turned[0], of_below[:, :half])
        multiply(above[:, units:], turned[1], of_below[:, half:])
    through_activation(room.slopes[0], room.outputs[0], of.layers[0].bias, networks.relu)
    multiply(room.samples.inputs.T, room.slopes[0], of.layers[0].weights[0])


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
