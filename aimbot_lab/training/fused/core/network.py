"""Actor and critic as kernels, forwards and backwards, on what encoders or a memory give them.

Without layers of their own both read that directly. Where a unit is chosen to aim at by attention
(Ye et al. 2020), its score is the product of a query with its key, q . key with no 1 / sqrt(Q), and
that of aiming at none q . its learned key. A slot without a unit has no score; masks rule it out.

An action consists of branches: choices, then Gaussians. Inner loops over their probabilities run
over samples, so that the processor takes several at a time.
"""

from typing import Any

import numpy as np

from aimbot_lab.foundation.kernels.jit import kernel, late_called, late_inlined, stored
from aimbot_lab.foundation.kernels.lanes import any_exp, dot, exp, log, multiply
from aimbot_lab.training.fused.core.arrays import (
    HALF,
    ZERO,
    Floats,
    Head,
    KindArrays,
    Net,
    Networks,
    Noise,
    Samples,
    Whole,
    Workspace,
)
from aimbot_lab.training.fused.core.layers import (
    activate,
    add_rows,
    encode,
    encode_backward,
    give_states,
    remember,
    remember_backward,
    spread,
    take_units,
    through_activation,
    turn,
)

FORBIDDEN = np.float32(-1e8)  # a logit whose probability is exactly 0
HALF_LOG_TAU = 0.9189385332046728  # log(2 pi) / 2


@late_called
def take_outputs(head: Head, bias: Floats, masks: Floats, starts: Whole) -> None:
    """Write logits and means, `bias` [L + C] added, and all that follows from the logits.

    `starts` [branches of choices + 1]: where each begins. With `masks` [M, N] (no rows where
    nothing is masked) a masked choice takes no part: its probability is 0.
    """
    for k in range(bias.size):
        row = head.logits[k]
        for n in range(row.size):
            row[n] = head.outputs[n, k] + bias[k]
    for k in range(masks.shape[0]):
        logits = head.logits[k]
        for n in range(logits.size):
            logits[n] = logits[n] if masks[k, n] > HALF else FORBIDDEN
    for branch in range(starts.size - 1):
        shift(head, branch, starts[branch], starts[branch + 1])
        normalize(head, branch, starts[branch], starts[branch + 1])


@late_inlined
def shift(head: Head, branch: int, first: int, last: int) -> None:
    """Shift a branch's logits so that the largest is 0."""
    largest = head.log_sums[branch]
    largest[:] = FORBIDDEN
    for k in range(first, last):
        logits = head.logits[k]
        for n in range(largest.size):
            largest[n] = max(largest[n], logits[n])
    for k in range(first, last):
        logits = head.logits[k]
        for n in range(largest.size):
            logits[n] = max(logits[n] - largest[n], FORBIDDEN)


@late_inlined
def normalize(head: Head, branch: int, first: int, last: int) -> None:
    """Write a branch's probabilities, log_sums and entropies from its shifted logits."""
    sums, entropies = head.log_sums[branch], head.entropies[branch]
    sums[:] = ZERO
    entropies[:] = ZERO
    for k in range(first, last):
        logits, probs = head.logits[k], head.probs[k]
        for n in range(sums.size):
            probs[n] = exp(logits[n])
            sums[n] += probs[n]
    for k in range(first, last):
        logits, probs = head.logits[k], head.probs[k]
        for n in range(sums.size):
            probs[n] /= sums[n]
            entropies[n] -= probs[n] * logits[n]
    for n in range(sums.size):
        sums[n] = log(sums[n])
        entropies[n] += sums[n]


@late_inlined
def log_probs_of_choices(head: Head, actions: Floats, starts: Whole) -> None:
    """Write `log_probs` of the choices in the first rows of `actions` [K, N]."""
    for branch in range(starts.size - 1):
        found, taken, sums = head.log_probs[branch], actions[branch], head.log_sums[branch]
        for n in range(found.size):
            found[n] = -sums[n]
        for k in range(starts[branch], starts[branch + 1]):
            logits, index = head.logits[k], np.float32(k - starts[branch])
            for n in range(found.size):
                found[n] += logits[n] if taken[n] == index else ZERO


@late_inlined
def log_probs_of_gaussians(head: Head, actions: Floats, starts: Whole, log_std: Floats) -> None:
    """Write `log_probs` of the numbers among the columns of `actions` [K, N]."""
    for c in range(log_std.size):
        branch = starts.size - 1 + c
        means, found, taken = head.logits[starts[-1] + c], head.log_probs[branch], actions[branch]
        inverse = any_exp(-log_std[c])
        constant = np.float32(-log_std[c] - HALF_LOG_TAU)
        for n in range(found.size):
            off = (taken[n] - means[n]) * inverse
            found[n] = constant - HALF * off * off


@late_inlined
def log_probs_of(head: Head, actions: Floats, starts: Whole, log_std: Floats) -> None:
    """Write the `log_probs` of `actions` [K, N]."""
    log_probs_of_choices(head, actions, starts)
    log_probs_of_gaussians(head, actions, starts, log_std)


@late_inlined
def choose(probs: Floats, n: int, chance: np.float32) -> int:
    """The first choice of sample `n` whose cumulated probability exceeds `chance`.

    Never one of probability 0. `probs` [choices, N].
    """
    total = ZERO
    for k in range(probs.shape[0]):
        total += probs[k, n]
    left, chosen = chance * total, 0
    for k in range(probs.shape[0]):
        if probs[k, n] > ZERO:
            chosen = k
            if left < probs[k, n]:
                break
            left -= probs[k, n]
    return chosen


@late_called
def choose_actions(
    head: Head, noise: Noise, actions: Floats, starts: Whole, log_std: Floats
) -> None:
    """Write `actions` [K, N], drawn from their distributions, and their `log_probs`."""
    for branch in range(starts.size - 1):
        probs = head.probs[starts[branch] : starts[branch + 1]]
        for n in range(actions.shape[1]):
            actions[branch, n] = choose(probs, n, noise.uniform[n, branch])
    for c in range(log_std.size):
        branch, deviation = starts.size - 1 + c, any_exp(log_std[c])
        for n in range(actions.shape[1]):
            actions[branch, n] = head.logits[starts[-1] + c, n] + deviation * noise.normal[n, c]
    log_probs_of(head, actions, starts, log_std)


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
        elif layout.has_parts_below:
            below_first(networks, workspace)


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

    What follows is `heads_forward`.
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
    if networks.layout.encodes:
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
