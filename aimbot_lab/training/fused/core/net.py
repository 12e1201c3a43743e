"""Actor and critic forward and backward, for N samples at a time, without Python in between."""

from aimbot_lab.foundation.kernels.jit import called, kernel
from aimbot_lab.foundation.kernels.matmul import dot, multiply
from aimbot_lab.training.fused.core.branches import take_outputs
from aimbot_lab.training.fused.core.layers import activate, spread, through_activation
from aimbot_lab.training.fused.core.parts import Gradients, Networks, Workspace


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


@called
def forward(networks: Networks, workspace: Workspace) -> None:
    """From the inputs in `workspace` to all that its head holds before an action is known."""
    net, head = networks.net, workspace.head
    multiply(workspace.samples.inputs, net.layers[0].weights[0], workspace.outputs[0])
    activate(workspace.outputs[0], net.layers[0].bias, networks.relu)
    for number in range(1, len(net.layers)):
        weights = net.layers[number].weights
        below, out = workspace.outputs[number - 1], workspace.outputs[number]
        half, units = below.shape[1] // 2, out.shape[1] // 2
        multiply(below[:, :half], weights[0], out[:, :units])
        multiply(below[:, half:], weights[1], out[:, units:])
        activate(out, net.layers[number].bias, networks.relu)
    top = workspace.outputs[-1]
    half = top.shape[1] // 2
    multiply(top[:, :half], networks.turned.action, head.outputs)
    for n in range(head.values.shape[0]):
        head.values[n, 0] = dot(top[n, half:], net.value) + net.value_bias[0]
    take_outputs(head, net.action_bias, workspace.samples.masks, networks.starts)


@called
def backward(networks: Networks, workspace: Workspace, gradients: Gradients) -> None:
    """From the derivatives by the head's logits, means and values to those by all weights."""
    net, head, of = networks.net, workspace.head, gradients.net
    top, of_top = workspace.outputs[-1], workspace.gradients[-1]
    half = top.shape[1] // 2
    multiply(head.logits, top[:, :half], of.action)
    for k in range(of.action_bias.size):
        of.action_bias[k] = dot(head.logits[k], workspace.ones)
    multiply(head.values.T, top[:, half:], of.value.reshape((1, half)))
    of.value_bias[0] = dot(head.values[:, 0], workspace.ones)
    multiply(head.logits.T, net.action, of_top[:, :half])
    spread(head.values[:, 0], net.value, of_top[:, half:])
    for number in range(len(net.layers) - 1, 0, -1):
        above, below = workspace.gradients[number], workspace.outputs[number - 1]
        through_activation(above, workspace.outputs[number], of.layers[number].bias, networks.relu)
        half, units = below.shape[1] // 2, above.shape[1] // 2
        of_weights, turned = of.layers[number].weights, networks.turned.layers[number]
        of_below = workspace.gradients[number - 1]
        multiply(below[:, :half].T, above[:, :units], of_weights[0])
        multiply(below[:, half:].T, above[:, units:], of_weights[1])
        multiply(above[:, :units], turned[0], of_below[:, :half])
        multiply(above[:, units:], turned[1], of_below[:, half:])
    through_activation(
        workspace.gradients[0], workspace.outputs[0], of.layers[0].bias, networks.relu
    )
    multiply(workspace.samples.inputs.T, workspace.gradients[0], of.layers[0].weights[0])
