"""Actor and critic forward and backward, for N samples at a time, without Python in between."""

from aimbot_lab.foundation.blas import multiply
from aimbot_lab.foundation.jit import inlined, kernel
from aimbot_lab.training.core.branches import choose_actions, take_outputs
from aimbot_lab.training.core.gather import gather
from aimbot_lab.training.core.layers import activate, spread, through_activation
from aimbot_lab.training.core.loss import differentiate
from aimbot_lab.training.core.parts import (
    Floats,
    Lane,
    Loss,
    Networks,
    Room,
    Slopes,
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
    multiply(sgemm, top[:, :half], net.action.T, room.head.raw)
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


@kernel
def learn_piece(
    networks: Networks,
    room: Room,
    rows: Floats,
    indices: Whole,
    loss: Loss,
    slopes: Slopes,
    lane: Lane,
) -> None:
    """Add to `lane` the gradient and the losses of the samples `indices` [N] of `rows` [S, W].

    `room` must be for N samples; it and `slopes` are used up.
    """
    gather(rows, indices, room.samples)
    forward(networks, room)
    head, net = room.head, networks.net
    differentiate(
        head, room.samples, networks.starts, loss, net.log_std, slopes.net.log_std, lane.sums
    )
    slopes.net.value_bias[0] = 0.0
    for n in range(head.values.shape[0]):
        slopes.net.value_bias[0] += head.values[n, 0]
    backward(networks, room, slopes)
    for k in range(slopes.flat.size):
        lane.gradient[k] += slopes.flat[k]


@kernel
def act_piece(
    networks: Networks, room: Room, features: Floats, chances: Floats, noise: Floats
) -> None:
    """Choose actions for `features` [N, F + M]: they, their log-probabilities and the values.

    Found in the samples and the head of `room`. `chances` and `noise` as in `choose_actions`.
    """
    samples = room.samples
    size = samples.inputs.shape[1]
    for n in range(features.shape[0]):
        for column in range(size):
            samples.inputs[n, column] = features[n, column]
        for column in range(samples.masks.shape[0]):
            samples.masks[column, n] = features[n, size + column]
    forward(networks, room)
    choose_actions(
        room.head, chances, noise, samples.actions, networks.starts, networks.net.log_std
    )
