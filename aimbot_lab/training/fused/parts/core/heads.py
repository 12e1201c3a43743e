"""Actor and critic forward and backward, on what encoders or memories give them.

Without layers of their own both read that directly.
"""

from aimbot_lab.foundation.kernels.jit import called, inlined
from aimbot_lab.foundation.kernels.matmul import dot, multiply
from aimbot_lab.training.fused.core.branches import take_outputs
from aimbot_lab.training.fused.core.layers import activate, spread, through_activation
from aimbot_lab.training.fused.parts.core.arrays import PartsNet, PartsNetworks, PartsWorkspace
from aimbot_lab.training.fused.parts.core.attention import attend, attend_backward
from aimbot_lab.training.fused.parts.core.sums import add_rows


@called
def heads_forward(whole: PartsNetworks, workspace: PartsWorkspace) -> None:
    """To all that the head holds before an action is known."""
    net, head, layout = whole.net, workspace.head, whole.layout
    for number in range(layout.layers):
        layer, out = net.layers[number], workspace.outputs[number]
        units = out.shape[1] // 2
        actor, critic = workspace.actor_given[number], workspace.critic_given[number]
        below = layer.weights.shape[1]
        multiply(actor[:, :below], layer.weights[0], out[:, :units])
        multiply(critic[:, critic.shape[1] - below :], layer.weights[1], out[:, units:])
        activate(out, layer.bias, layout.relu)
    top, other = workspace.actor_given[layout.layers], workspace.critic_given[layout.layers]
    size = net.value.size
    multiply(top[:, :size], whole.turned.action, head.outputs)
    for n in range(head.values.shape[0]):
        head.values[n, 0] = dot(other[n, other.shape[1] - size :], net.value) + net.value_bias[0]
    if layout.targets > 0:
        attend(whole, workspace)
    take_outputs(head, net.action_bias, workspace.samples.masks, whole.starts)


@inlined
def top_backward(whole: PartsNetworks, workspace: PartsWorkspace, of: PartsNet) -> None:
    """From the derivatives by logits, means and values to those by the last layers."""
    head, net, depth = workspace.head, whole.net, whole.layout.layers
    actor, critic = workspace.actor_given[depth], workspace.critic_given[depth]
    size = net.value.size
    multiply(head.logits, actor[:, :size], of.action)
    for k in range(of.action_bias.size):
        of.action_bias[k] = dot(head.logits[k], workspace.ones)
    others = critic[:, critic.shape[1] - size :]
    multiply(head.values.T, others, of.value.reshape((1, size)))
    of.value_bias[0] = dot(head.values[:, 0], workspace.ones)
    if depth > 0:
        of_top = workspace.gradients[depth - 1]
        half = of_top.shape[1] // 2
        multiply(head.logits.T, net.action, of_top[:, :half])
        spread(head.values[:, 0], net.value, of_top[:, half:])
    else:
        of_actor, of_critic = workspace.of_actor_given, workspace.of_critic_given
        multiply(head.logits.T, net.action, of_actor)
        spread(head.values[:, 0], net.value, of_critic)
        if whole.layout.memories < 2:
            add_rows(of_critic, of_actor)


@inlined
def below_first(whole: PartsNetworks, workspace: PartsWorkspace) -> None:
    """Write the derivatives by what the first layers are given."""
    slopes, turned = workspace.gradients[0], whole.turned.layers[0]
    units = slopes.shape[1] // 2
    if whole.layout.memories < 2:
        both = turned.reshape((2 * units, turned.shape[2]))
        multiply(slopes, both, workspace.of_actor_given)
    else:
        multiply(slopes[:, :units], turned[0], workspace.of_actor_given)
        multiply(slopes[:, units:], turned[1], workspace.of_critic_given)


@called
def heads_backward(whole: PartsNetworks, workspace: PartsWorkspace, of: PartsNet) -> None:
    """From the derivatives by logits, means and values to those by weights and what was given."""
    layout = whole.layout
    if layout.targets > 0:
        attend_backward(whole, workspace, of)
    top_backward(whole, workspace, of)
    for number in range(layout.layers - 1, -1, -1):
        slopes, layer = workspace.gradients[number], of.layers[number]
        through_activation(slopes, workspace.outputs[number], layer.bias, layout.relu)
        units = slopes.shape[1] // 2
        actor, critic = workspace.actor_given[number], workspace.critic_given[number]
        below = layer.weights.shape[1]
        others = critic[:, critic.shape[1] - below :]
        multiply(actor[:, :below].T, slopes[:, :units], layer.weights[0])
        multiply(others.T, slopes[:, units:], layer.weights[1])
        if number > 0:
            of_below, turned = workspace.gradients[number - 1], whole.turned.layers[number]
            half = of_below.shape[1] // 2
            multiply(slopes[:, :units], turned[0], of_below[:, :half])
            multiply(slopes[:, units:], turned[1], of_below[:, half:])
        else:
            below_first(whole, workspace)
