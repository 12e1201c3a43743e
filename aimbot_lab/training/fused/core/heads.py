"""Actor and critic forward and backward, on what encoders or memories give them.

Without layers of their own both read that directly. Where a unit is chosen to aim at by attention
(Ye et al. 2020), its score is the product of a query with its key, q . key with no 1 / sqrt(Q), and
that of nobody q . its learned key. A slot without a unit has no score; masks rule it out.
"""

import numpy as np

from aimbot_lab.foundation.kernels.jit import late_called, late_inlined
from aimbot_lab.foundation.kernels.matmul import dot, multiply
from aimbot_lab.training.fused.core.arrays import Net, Networks, Workspace
from aimbot_lab.training.fused.core.branches import take_outputs
from aimbot_lab.training.fused.core.layers import activate, add_rows, spread, through_activation

ZERO = np.float32(0.0)


@late_called
def attend(networks: Networks, workspace: Workspace) -> None:
    """Write the scores to the columns of `head.outputs` that belong to the target."""
    net, target, outputs = networks.net, networks.layout.target, workspace.head.outputs
    first = net.action.shape[0] - net.nobody.size
    for n in range(outputs.shape[0]):
        row, query = outputs[n], workspace.query[n]
        for k in range(query.size):
            query[k] = row[first + k] + net.action_bias[first + k]
        row[target] = dot(query, net.nobody)
        for number in range(networks.layout.kinds):
            kind, arrays = networks.kinds[number], workspace.kinds[number]
            if kind.target > 0:
                size = arrays.pooled.shape[1]
                for unit in range(arrays.first[n], arrays.first[n + 1]):
                    choice = kind.target + arrays.slots[unit]
                    row[target + choice] = dot(query, arrays.outputs[unit, size:])


@late_called
def attend_backward(networks: Networks, workspace: Workspace, of: Net) -> None:
    """From the derivatives by the scores, in `head.logits`, to those by keys and query.

    The latter take the last rows of `head.logits`; those of the scores become 0, because no weight
    leads to a score directly.
    """
    net, target, logits = networks.net, networks.layout.target, workspace.head.logits
    first = net.action.shape[0] - net.nobody.size
    of.nobody[:] = ZERO
    for n in range(logits.shape[1]):
        query, of_query, slope = workspace.query[n], workspace.of_query[n], logits[target, n]
        for k in range(query.size):
            of_query[k] = slope * net.nobody[k]
            of.nobody[k] += slope * query[k]
        for number in range(networks.layout.kinds):
            kind, arrays = networks.kinds[number], workspace.kinds[number]
            if kind.target > 0:
                size = arrays.pooled.shape[1]
                for unit in range(arrays.first[n], arrays.first[n + 1]):
                    slope = logits[target + kind.target + arrays.slots[unit], n]
                    key, of_key = arrays.outputs[unit], arrays.of_keys[unit]
                    for k in range(query.size):
                        of_query[k] += slope * key[size + k]
                        of_key[k] = slope * query[k]
        for k in range(query.size):
            logits[first + k, n] = of_query[k]
    for k in range(target, target + networks.layout.targets):
        logits[k, :] = ZERO


@late_inlined
def heads_forward(networks: Networks, workspace: Workspace) -> None:
    """To all that the head holds before an action is known; to values if it has room for them."""
    net, head, layout = networks.net, workspace.head, networks.layout
    judges = head.values.size > 0
    for number in range(layout.layers):
        layer, out = net.layers[number], workspace.outputs[number]
        units = out.shape[1] // 2
        used = 2 * units if judges else units
        actor, critic = workspace.actor_given[number], workspace.critic_given[number]
        if number == 0 and layout.bare:
            multiply(actor, layer.weights[0][:, :used], out[:, :used])
        else:
            below = layer.weights.shape[1]
            multiply(actor[:, :below], layer.weights[0], out[:, :units])
            if judges:
                multiply(critic[:, critic.shape[1] - below :], layer.weights[1], out[:, units:])
        activate(out, layer.bias[:used], layout.relu)
    top, other = workspace.actor_given[layout.layers], workspace.critic_given[layout.layers]
    size = net.value.size
    multiply(top[:, :size], networks.turned.action, head.outputs)
    for n in range(head.values.shape[0]):
        value = dot(other[n, other.shape[1] - size :], net.value)
        head.values[n, 0] = value + net.value_bias[0]
    if layout.targets > 0:
        attend(networks, workspace)
    take_outputs(head, net.action_bias, workspace.samples.masks, networks.starts)


@late_inlined
def top_backward(networks: Networks, workspace: Workspace, of: Net) -> None:
    """From the derivatives by logits, means and values to those by the last layers."""
    head, net, depth = workspace.head, networks.net, networks.layout.layers
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
        if networks.layout.memories < 2:
            add_rows(of_critic, of_actor)


@late_inlined
def below_first(networks: Networks, workspace: Workspace) -> None:
    """Write the derivatives by what the first layers are given."""
    slopes, turned = workspace.gradients[0], networks.turned.layers[0]
    units = slopes.shape[1] // 2
    if networks.layout.memories < 2:
        both = turned.reshape((2 * units, turned.shape[2]))
        multiply(slopes, both, workspace.of_actor_given)
    else:
        multiply(slopes[:, :units], turned[0], workspace.of_actor_given)
        multiply(slopes[:, units:], turned[1], workspace.of_critic_given)


@late_inlined
def heads_backward(networks: Networks, workspace: Workspace, of: Net) -> None:
    """From the derivatives by logits, means and values to those by weights and what was given.

    The latter only where there are parts below, which learn from them.
    """
    layout = networks.layout
    if layout.targets > 0:
        attend_backward(networks, workspace, of)
    top_backward(networks, workspace, of)
    for number in range(layout.layers - 1, -1, -1):
        slopes, layer = workspace.gradients[number], of.layers[number]
        through_activation(slopes, workspace.outputs[number], layer.bias, layout.relu)
        units = slopes.shape[1] // 2
        actor, critic = workspace.actor_given[number], workspace.critic_given[number]
        if number == 0 and layout.bare:
            multiply(actor.T, slopes, layer.weights[0])
        else:
            below = layer.weights.shape[1]
            others = critic[:, critic.shape[1] - below :]
            multiply(actor[:, :below].T, slopes[:, :units], layer.weights[0])
            multiply(others.T, slopes[:, units:], layer.weights[1])
        if number > 0:
            of_below, turned = workspace.gradients[number - 1], networks.turned.layers[number]
            half = of_below.shape[1] // 2
            multiply(slopes[:, :units], turned[0], of_below[:, :half])
            multiply(slopes[:, units:], turned[1], of_below[:, half:])
        elif layout.memories + layout.kinds + layout.scalar_layers > 0:
            below_first(networks, workspace)
