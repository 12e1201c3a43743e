"""A memory's weights once more, as its way back needs them."""

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.training.fused.core.memory_parts import RememberingNetworks
from aimbot_lab.training.fused.core.parts import Floats


@inlined
def turn(weights: Floats, out: Floats) -> None:
    """Write `weights` to `out` with rows and columns exchanged."""
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            out[column, row] = weights[row, column]


@kernel
def turn_memory(whole: RememberingNetworks) -> None:
    """Bring `whole.turned` up to date."""
    memory, turned = whole.memory, whole.turned
    lstm = memory.lstm
    turn(lstm.hidden, turned.hidden)
    turn(whole.networks.net.layers[0].weights[0], turned.first)
    for k in range(turned.bias.size):
        turned.bias[k] = lstm.input_bias[k] + lstm.hidden_bias[k]
    if whole.depth > 0:
        turn(lstm.inputs, turned.inputs)
    for number in range(2, whole.depth + 1):
        turn(memory.encoder[number].weights, turned.encoder[number])
