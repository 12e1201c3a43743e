"""Forward and backward through actor and critic: BLAS between kernels, for N samples at a time."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from aimbot_lab.training.core.branches import take_outputs
from aimbot_lab.training.core.layers import (
    add_bias,
    add_bias_relu,
    spread_values,
    through_relu,
    through_tanh,
)
from aimbot_lab.training.core.loss import differentiate
from aimbot_lab.training.core.parts import Doubles, Floats, Head, Loss, Samples
from aimbot_lab.training.fused_weights import Net, NetShape


class Pair(NamedTuple):
    """One array of N samples, and views of the actor's and the critic's units in it."""

    both: Floats  # [N, 2 H]
    actor: Floats  # [N, H]
    critic: Floats  # [N, H]


class Room(NamedTuple):
    """Arrays for N samples on their way through the networks and back."""

    samples: Samples
    outputs: tuple[Pair, ...]  # of each hidden layer
    slopes: tuple[Pair, ...]  # derivatives of the loss by these
    raw: Floats  # [N, L + C] outputs of the actor's last matrix product
    head: Head


def new_room(shape: NetShape, count: int) -> Room:
    """Room for `count` samples."""

    def zeros(*size: int) -> Floats:
        return np.zeros(size, np.float32)

    def pair(units: int) -> Pair:
        both = zeros(count, 2 * units)
        return Pair(both, both[:, :units], both[:, units:])

    samples = Samples(
        inputs=zeros(count, shape.inputs),
        masks=zeros(shape.masks, count),
        actions=zeros(shape.branches, count),
        old_log_probs=zeros(shape.ratios, count),
        advantages=zeros(count),
        returns=zeros(count),
        old_values=zeros(count),
    )
    head = Head(
        logits=zeros(shape.outputs, count),
        probs=zeros(sum(shape.choices), count),
        values=zeros(count),
        log_sums=zeros(len(shape.choices), count),
        entropies=zeros(len(shape.choices), count),
        log_probs=zeros(shape.branches, count),
        pushes=zeros(shape.branches, count),
    )
    outputs, slopes = ([pair(units) for units in shape.layers] for _ in range(2))
    return Room(samples, tuple(outputs), tuple(slopes), zeros(count, shape.outputs), head)


class Activation(NamedTuple):
    """A non-linearity, forward with the layer's bias and backward with that of its derivative."""

    forward: Callable[[Floats, Floats], None]
    backward: Callable[[Floats, Floats, Floats], None]


def _add_bias_tanh(outputs: Floats, bias: Floats) -> None:
    add_bias(outputs, bias)
    np.tanh(outputs, out=outputs)


ACTIVATIONS = {
    "relu": Activation(add_bias_relu, through_relu),
    "tanh": Activation(_add_bias_tanh, through_tanh),
}


def forward(shape: NetShape, net: Net, room: Room) -> None:
    """From the inputs in `room` to its head: shifted logits, their exponentials, and values."""
    activation = ACTIVATIONS[shape.activation]
    first, outputs = net.layers[0], room.outputs[0]
    np.matmul(room.samples.inputs, first.both.T, out=outputs.both)
    activation.forward(outputs.both, first.bias)
    for layer, above in zip(net.layers[1:], room.outputs[1:], strict=True):
        np.matmul(outputs.actor, layer.actor.T, out=above.actor)
        np.matmul(outputs.critic, layer.critic.T, out=above.critic)
        activation.forward(above.both, layer.bias)
        outputs = above
    head = room.head
    np.matmul(outputs.actor, net.action.T, out=room.raw)
    np.matmul(outputs.critic, net.value, out=head.values)
    np.add(head.values, net.value_bias, out=head.values)
    take_outputs(room.raw, net.action_bias, head, room.samples.masks, shape.starts)
    np.exp(head.probs, out=head.probs)


def backward(
    shape: NetShape, net: Net, room: Room, *, loss: Loss, gradient: Net, sums: Doubles
) -> None:
    """Write the loss's derivatives by all weights to `gradient`, after `forward`.

    The losses are added to `sums` [5]; what `forward` left in the room is used up.
    """
    head, top, slopes = room.head, room.outputs[-1], room.slopes[-1]
    differentiate(head, room.samples, shape.starts, loss, net.log_std, gradient.log_std, sums)
    np.matmul(head.logits, top.actor, out=gradient.action)
    np.sum(head.logits, axis=1, out=gradient.action_bias)
    np.matmul(head.values, top.critic, out=gradient.value)
    np.sum(head.values, keepdims=True, out=gradient.value_bias)
    np.matmul(head.logits.T, net.action, out=slopes.actor)
    spread_values(head.values, net.value, slopes.critic)
    _through_layers(shape, net, room, gradient)


def _through_layers(shape: NetShape, net: Net, room: Room, gradient: Net) -> None:
    """From the slopes of the last hidden layer's outputs down to the first layer's weights."""
    activation = ACTIVATIONS[shape.activation]
    for number in range(len(net.layers) - 1, 0, -1):
        layer, of_layer = net.layers[number], gradient.layers[number]
        slopes, below = room.slopes[number], room.outputs[number - 1]
        activation.backward(slopes.both, room.outputs[number].both, of_layer.bias)
        np.matmul(slopes.actor.T, below.actor, out=of_layer.actor)
        np.matmul(slopes.critic.T, below.critic, out=of_layer.critic)
        np.matmul(slopes.actor, layer.actor, out=room.slopes[number - 1].actor)
        np.matmul(slopes.critic, layer.critic, out=room.slopes[number - 1].critic)
    activation.backward(room.slopes[0].both, room.outputs[0].both, gradient.layers[0].bias)
    np.matmul(room.slopes[0].both.T, room.samples.inputs, out=gradient.layers[0].both)
