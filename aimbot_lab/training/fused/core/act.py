"""Actions for many observations, shared by threads."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.kernels.packed import pack, unpacked
from aimbot_lab.foundation.kernels.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.branches import choose_actions
from aimbot_lab.training.fused.core.features import Sight, see
from aimbot_lab.training.fused.core.net import forward
from aimbot_lab.training.fused.core.parts import (
    Floats,
    Head,
    Networks,
    Noise,
    PolicyInput,
    Sampled,
    ThreadWorkspace,
    WorkQueue,
    Workspace,
)

AT_STEP, SEES = range(2)  # of a queue's numbers: the step, and whether inputs are written

ZERO = np.float32(0.0)


@inlined
def show(
    policy_input: PolicyInput, sight: Sight, masks: int, step: int, first: int, last: int
) -> None:
    """Write what the networks see of the rows `first` to `last`, with `masks` columns behind."""
    size = sight.columns.size
    for row in range(first, last):
        out = policy_input.rows[step, row]
        see(policy_input.observations[row], policy_input.own[row], sight, out)
        for k in range(masks):
            out[size + 5 + k] = policy_input.observations[row, size + k]


@inlined
def answer(head: Head, actions: Floats, sampled: Sampled) -> None:
    """Write the `actions` [K, N] that were drawn, and what the head says of them."""
    branches, ratios = actions.shape[0], sampled.log_probs.shape[1]
    for n in range(actions.shape[1]):
        sampled.values[n, 0] = head.values[n, 0]
        whole = ZERO
        for k in range(branches):
            sampled.actions[n, k] = actions[k, n]
            whole += head.log_probs[k, n]
        for k in range(ratios):
            sampled.log_probs[n, k] = whole if ratios == 1 else head.log_probs[k, n]


@called
def draw(
    networks: Networks, workspace: Workspace, features: Floats, noise: Noise, sampled: Sampled
) -> None:
    """Write to `sampled` actions for `features` [N, F + M or more]; `workspace` is for N samples.

    Two threads may write the same row at the same time: what is read back must not be written.
    """
    samples = workspace.samples
    size = samples.inputs.shape[1]
    for n in range(features.shape[0]):
        for column in range(size):
            samples.inputs[n, column] = features[n, column]
        for column in range(samples.masks.shape[0]):
            samples.masks[column, n] = features[n, size + column]
    forward(networks, workspace)
    choose_actions(workspace.head, noise, samples.actions, networks.starts, networks.net.log_std)
    answer(workspace.head, samples.actions, sampled)


@kernel
def keep_act(arguments: Any, address: int) -> None:
    """Leave the arguments of `act` at `address`, for a `PackedCall`."""
    pack(arguments, address)


@kernel
def act_packed(address: int, kind: Any) -> None:
    """`act` for a `PackedCall`."""
    act(*unpacked(address, kind))


@inlined
def act(
    networks: Networks,
    sight: Sight,
    policy_input: PolicyInput,
    noise: Noise,
    sampled: Sampled,
    queue: WorkQueue,
    thread_workspace: ThreadWorkspace,
) -> None:
    """Draw an action for every row of a step, as one of its threads.

    The rows go piece by piece to the thread that takes them; a piece has as many as the workspace
    holds, and the last one ends with the last row, though others may have had its first ones. A
    worker goes on as long as there is work in time.
    """
    worker = thread_workspace.thread_id - 1
    workspace = thread_workspace.workspace
    count, rows = workspace.ones.size, policy_input.rows.shape[1]
    while worker < 0 or begins(queue.sync_flags, worker, thread_workspace.spin_limit):
        step = queue.numbers[AT_STEP]
        piece = add(queue.taken, 0, 1)
        while piece * count < rows:
            last = min((piece + 1) * count, rows)
            first = last - count
            if queue.numbers[SEES]:
                show(policy_input, sight, workspace.samples.masks.shape[0], step, first, last)
            features = policy_input.rows[step, first:last]
            own = Noise(noise.uniform[first:last], noise.normal[first:last])
            into = Sampled(
                sampled.actions[first:last],
                sampled.values[first:last],
                sampled.log_probs[first:last],
            )
            draw(networks, workspace, features, own, into)
            piece = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread_workspace.spin_limit)
            return
        finish(queue.sync_flags, worker)
