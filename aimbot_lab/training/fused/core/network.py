"""A network's parts in order, there and back. A part takes its place here."""

from typing import Any

from aimbot_lab.foundation.kernels.jit import kernel, late_inlined
from aimbot_lab.foundation.kernels.packed import stored
from aimbot_lab.training.fused.core.arrays import (
    Floats,
    KindArrays,
    Net,
    Networks,
    Samples,
    Workspace,
)
from aimbot_lab.training.fused.core.encoders import encode, encode_backward, take_units
from aimbot_lab.training.fused.core.heads import heads_backward
from aimbot_lab.training.fused.core.layers import turn
from aimbot_lab.training.fused.core.lstm import give_states, remember, remember_backward


@late_inlined
def take_columns(row: Floats, start: int, columns: Floats, n: int) -> int:
    """Write `row` from `start` on to sample `n` of `columns` [C, N]; where the next ones start."""
    for column in range(columns.shape[0]):
        columns[column, n] = row[start + column]
    return start + columns.shape[0]


@late_inlined
def take_shown(
    networks: Networks,
    samples: Samples,
    kinds: tuple[KindArrays, ...],
    row: Floats,
    n: int,
) -> int:
    """Write inputs and masks of `row` of a rollout to sample `n`; where the rest of it starts.

    Samples must be taken in order, because only units that are seen have a place.
    """
    for column in range(samples.inputs.shape[1]):
        samples.inputs[n, column] = row[column]
    for number in range(networks.layout.kinds):
        take_units(row, n, networks.kinds[number], kinds[number])
    return take_columns(row, networks.layout.shown, samples.masks, n)


@late_inlined
def forward(networks: Networks, workspace: Workspace) -> None:
    """From the inputs, and what is carried to the first step, to what actor and critic are given.

    What follows is `heads.heads_forward`.
    """
    if not networks.layout.bare:
        encode(networks, workspace)
    if networks.layout.memories > 0:
        give_states(networks, workspace)
        remember(networks, workspace)


@late_inlined
def backward(networks: Networks, workspace: Workspace, of: Net) -> None:
    """From the derivatives by the head's logits, means and values to those by all weights."""
    heads_backward(networks, workspace, of)
    if networks.layout.memories > 0:
        remember_backward(networks, workspace, of)
    if networks.layout.scalar_layers + networks.layout.kinds > 0:
        encode_backward(networks, workspace, of)


@kernel
def turn_weights(address: int, kind: Any) -> None:
    """Bring `networks.turned` up to date; for a `PackedCall` on networks."""
    (networks,) = stored(address, kind)
    net, turned, layout = networks.net, networks.turned, networks.layout
    for number in range(2, layout.scalar_layers + 1):
        turn(net.scalars[number].weights, turned.scalars[number])
    for number in range(layout.kinds):
        units, out = net.units[number], turned.units[number]
        for layer in range(2, layout.unit_layers + 1):
            turn(units.layers[layer].weights, out.layers[layer])
        turn(units.last, out.last)
    for number in range(layout.memories):
        lstm, memory = net.memories[number], turned.memories[number]
        turn(lstm.inputs, memory.inputs)
        turn(lstm.hidden, memory.hidden)
        for k in range(memory.bias.size):
            memory.bias[k] = lstm.input_bias[k] + lstm.hidden_bias[k]
    for number in range(1 if layout.bare else 0, layout.layers):
        for half in range(2):
            turn(net.layers[number].weights[half], turned.layers[number][half])
    turn(net.action, turned.action)
