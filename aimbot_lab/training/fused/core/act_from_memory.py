"""Actions of a policy with a memory for many observations, shared by threads."""

from typing import Any

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.kernels.packed import pack, unpacked
from aimbot_lab.foundation.threads.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.act import AT_STEP, SEES, draw, show
from aimbot_lab.training.fused.core.features import Sight
from aimbot_lab.training.fused.core.lstm import remember
from aimbot_lab.training.fused.core.memory_parts import (
    MemoryThread,
    MemoryWorkspace,
    RememberingNetworks,
    States,
)
from aimbot_lab.training.fused.core.parts import Floats, Noise, PolicyInput, Sampled, WorkQueue


@called
def recall(
    whole: RememberingNetworks,
    workspace: MemoryWorkspace,
    features: Floats,
    states: States,
    first: int,
) -> None:
    """Write `shown` for `features` [N, F + M or more] of the rows from `first` on, and `after`.

    Two threads may have the same rows at the same time: `before` is not written.
    """
    sequence, inputs, shown = workspace.sequence, workspace.samples.inputs, workspace.shown
    size = sequence.hidden.shape[1]
    for n in range(inputs.shape[0]):
        state, kept = states.before[first + n], states.kept[first + n]
        for column in range(inputs.shape[1]):
            inputs[n, column] = features[n, column]
        for unit in range(size):
            sequence.hidden_before[n, unit] = state[0, unit] * kept
            sequence.cells_before[n, unit] = state[1, unit] * kept
    remember(whole, workspace)
    for n in range(inputs.shape[0]):
        state = states.after[first + n]
        for unit in range(size):
            state[0, unit] = sequence.hidden[n, unit]
            state[1, unit] = sequence.cells[n, unit]
            shown[n, unit] = sequence.hidden[n, unit]
        for column in range(shown.shape[1] - size):
            shown[n, size + column] = features[n, inputs.shape[1] + column]


@kernel
def keep_act_from_memory(arguments: Any, address: int) -> None:
    """Leave the arguments of `act_from_memory` at `address`, for a `PackedCall`."""
    pack(arguments, address)


@kernel
def act_from_memory_packed(address: int, kind: Any) -> None:
    """`act_from_memory` for a `PackedCall`."""
    act_from_memory(*unpacked(address, kind))


@inlined
def act_from_memory(
    whole: RememberingNetworks,
    sight: Sight,
    policy_input: PolicyInput,
    sampling: tuple[Noise, Sampled],
    states: States,
    queue: WorkQueue,
    thread: MemoryThread,
) -> None:
    """What `act` does, and the next state of every row."""
    worker, workspace, memory = thread.thread_id - 1, thread.workspace, thread.memory
    count, rows = workspace.ones.size, policy_input.rows.shape[1]
    noise, sampled = sampling
    while worker < 0 or begins(queue.sync_flags, worker, thread.spin_limit):
        step = queue.numbers[AT_STEP]
        piece = add(queue.taken, 0, 1)
        while piece * count < rows:
            last = min((piece + 1) * count, rows)
            first = last - count
            if queue.numbers[SEES]:
                show(policy_input, sight, workspace.samples.masks.shape[0], step, first, last)
            recall(whole, memory, policy_input.rows[step, first:last], states, first)
            own = Noise(noise.uniform[first:last], noise.normal[first:last])
            into = Sampled(
                sampled.actions[first:last],
                sampled.values[first:last],
                sampled.log_probs[first:last],
            )
            draw(whole.networks, workspace, memory.shown, own, into)
            piece = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread.spin_limit)
            return
        finish(queue.sync_flags, worker)
