"""Weights once more, with rows and columns exchanged, as the way back needs them."""

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.parts.core.arrays import PartsNetworks


@inlined
def turn(weights: Floats, out: Floats) -> None:
    """Write `weights` to `out` with rows and columns exchanged; `out` may have more of both."""
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            out[column, row] = weights[row, column]


@kernel
def turn_parts(whole: PartsNetworks) -> None:
    """Bring `whole.turned` up to date."""
    net, turned, layout = whole.net, whole.turned, whole.layout
    for number in range(2, layout.scalar_layers + 1):
        turn(net.scalars[number].weights, turned.scalars[number])
    for kind in range(layout.kinds):
        units, out = net.units[kind], turned.units[kind]
        for number in range(2, layout.unit_layers + 1):
            turn(units.layers[number].weights, out.layers[number])
        turn(units.last, out.last)
    for number in range(layout.memories):
        lstm, memory = net.memories[number], turned.memories[number]
        turn(lstm.inputs, memory.inputs)
        turn(lstm.hidden, memory.hidden)
        for k in range(memory.bias.size):
            memory.bias[k] = lstm.input_bias[k] + lstm.hidden_bias[k]
    for number in range(layout.layers):
        for half in range(2):
            turn(net.layers[number].weights[half], turned.layers[number][half])
    turn(net.action, turned.action)
