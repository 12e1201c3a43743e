"""Actions of a network of parts for many observations, shared by threads."""

from typing import Any

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.kernels.packed import pack, unpacked
from aimbot_lab.foundation.kernels.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.act import AT_STEP, SEES, answer
from aimbot_lab.training.fused.core.branches import choose_actions
from aimbot_lab.training.fused.core.gather import spread
from aimbot_lab.training.fused.core.parts import Floats, Noise, PolicyInput, Sampled, WorkQueue
from aimbot_lab.training.fused.parts.core.arrays import (
    PartsNetworks,
    PartsThread,
    PartsWorkspace,
    States,
)
from aimbot_lab.training.fused.parts.core.encoders import encode, take_inputs
from aimbot_lab.training.fused.parts.core.heads import heads_forward
from aimbot_lab.training.fused.parts.core.lstm import remember
from aimbot_lab.training.fused.parts.core.show import PartsSight, show
from aimbot_lab.training.fused.parts.core.states import copy_state, give_states, take_states


@called
def decide(
    whole: PartsNetworks,
    workspace: PartsWorkspace,
    features: Floats,
    states: States,
    first: int,
) -> None:
    """From `features` [N, F + M or more] of the rows from `first` on to all that the head holds.

    Writes the states after the step. Two threads may have the same rows at the same time: the
    states before it are not written.
    """
    count = features.shape[0]
    for n in range(count):
        take_inputs(whole, workspace, features[n], n)
        spread(features[n], whole.layout.shown, workspace.samples.masks, n)
        workspace.memories[0].kept[n] = states.kept[first + n]
        copy_state(states.before[first + n], workspace.carried[n])
    give_states(whole, workspace)
    encode(whole, workspace)
    remember(whole, workspace)
    heads_forward(whole, workspace)
    for n in range(count):
        take_states(whole, workspace, n)
        copy_state(workspace.carried[n], states.after[first + n])


@kernel
def keep_act_by_parts(arguments: Any, address: int) -> None:
    """Leave the arguments of `act_by_parts` at `address`, for a `PackedCall`."""
    pack(arguments, address)


@kernel
def act_by_parts_packed(address: int, kind: Any) -> None:
    """`act_by_parts` for a `PackedCall`."""
    act_by_parts(*unpacked(address, kind))


@inlined
def act_by_parts(
    whole: PartsNetworks,
    sight: PartsSight,
    policy_input: PolicyInput,
    sampling: tuple[Noise, Sampled],
    states: States,
    queue: WorkQueue,
    thread: PartsThread,
) -> None:
    """What `act` does, and the next state of every row."""
    worker, workspace = thread.thread_id - 1, thread.workspace
    count, rows = workspace.ones.size, policy_input.rows.shape[1]
    noise, sampled = sampling
    while worker < 0 or begins(queue.sync_flags, worker, thread.spin_limit):
        step = queue.numbers[AT_STEP]
        piece = add(queue.taken, 0, 1)
        while piece * count < rows:
            last = min((piece + 1) * count, rows)
            first = last - count
            if queue.numbers[SEES]:
                show(whole, sight, policy_input, step, (first, last), workspace.scratch)
            decide(whole, workspace, policy_input.rows[step, first:last], states, first)
            own = Noise(noise.uniform[first:last], noise.normal[first:last])
            into = Sampled(
                sampled.actions[first:last],
                sampled.values[first:last],
                sampled.log_probs[first:last],
            )
            actions, log_std = workspace.samples.actions, whole.net.log_std
            choose_actions(workspace.head, own, actions, whole.starts, log_std)
            answer(workspace.head, actions, into)
            piece = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread.spin_limit)
            return
        finish(queue.sync_flags, worker)
