"""Actions of several actors of one shape, each for rows of its own, shared by threads.

There is no critic: past selves learn nothing.
"""

from typing import Any, NamedTuple

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.kernels.matmul import multiply
from aimbot_lab.foundation.kernels.packed import pack, unpacked, unpacked_like
from aimbot_lab.foundation.kernels.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.act import show
from aimbot_lab.training.fused.core.branches import choose_actions, take_outputs
from aimbot_lab.training.fused.core.features import Sight
from aimbot_lab.training.fused.core.layers import activate
from aimbot_lab.training.fused.core.parts import (
    Floats,
    Head,
    Noise,
    PolicyInput,
    Whole,
    WorkQueue,
)

PIECES, ACTORS_SEE = range(2)  # of a queue's numbers: how many, and whether inputs are written


class StackedLayer(NamedTuple):
    """A hidden layer of P actors."""

    weights: Floats  # [P, units below, H]
    bias: Floats  # [P, H]


class StackedActors(NamedTuple):
    """The weights of P actors, as `Networks` has those of one."""

    layers: tuple[StackedLayer, ...]
    action: Floats  # [P, H, L + C], and columns of 0 up to whole lanes
    action_bias: Floats  # [P, L + C]
    log_std: Floats  # [P, C]
    starts: Whole  # [branches of choices + 1] where the logits of each begin, and the last's end
    relu: bool  # or tanh


class ActorPieces(NamedTuple):
    """Rows sorted by who acts for them, in pieces of one actor each."""

    rows: Whole  # [B] as many of the first as the last piece's end says
    first: Whole  # [B + 1] where in `rows` each piece begins, and where the last one ends
    actors: Whole  # [B] of each piece


class ActorWorkspace(NamedTuple):
    """Arrays for n rows."""

    inputs: Floats  # [n, F]
    masks: Floats  # [M, n]
    actions: Floats  # [K, n]
    noise: Noise
    layers: tuple[Floats, ...]  # [n, H] what comes out of each
    head: Head  # without values


class ActorThread(NamedTuple):
    """What a thread works with; its workspaces are for one row, two, three ..."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up
    places: Any  # [N] of the `PackedTable` of workspaces
    example: ActorWorkspace  # any of them, for its type


@inlined
def take_rows(workspace: ActorWorkspace, rows: Whole, features: Floats, noise: Noise) -> None:
    """Bring inputs, masks and noise of `rows` [n] together; `features` [B, F + M or more]."""
    inputs, masks, own = workspace.inputs, workspace.masks, workspace.noise
    size = inputs.shape[1]
    for n in range(rows.size):
        row = rows[n]
        for column in range(size):
            inputs[n, column] = features[row, column]
        for column in range(masks.shape[0]):
            masks[column, n] = features[row, size + column]
        for branch in range(noise.uniform.shape[1]):
            own.uniform[n, branch] = noise.uniform[row, branch]
        for column in range(noise.normal.shape[1]):
            own.normal[n, column] = noise.normal[row, column]


@called
def decide_piece(
    stacked: StackedActors,
    actor: int,
    workspace: ActorWorkspace,
    rows: Whole,
    features: Floats,
    drawn: tuple[Noise, Floats],
) -> None:
    """Write the actions of `rows` [n], which `actor` draws, to the second of `drawn` [B, K]."""
    take_rows(workspace, rows, features, drawn[0])
    below, head, actions = workspace.inputs, workspace.head, workspace.actions
    for number in range(len(stacked.layers)):
        layer, out = stacked.layers[number], workspace.layers[number]
        multiply(below, layer.weights[actor], out)
        activate(out, layer.bias[actor], stacked.relu)
        below = out
    multiply(below, stacked.action[actor], head.outputs)
    take_outputs(head, stacked.action_bias[actor], workspace.masks, stacked.starts)
    choose_actions(head, workspace.noise, actions, stacked.starts, stacked.log_std[actor])
    for n in range(rows.size):
        for k in range(actions.shape[0]):
            drawn[1][rows[n], k] = actions[k, n]


@kernel
def keep_actor_workspace(workspace: Any, address: int) -> None:
    """Leave `workspace` at `address`, for a `PackedTable`."""
    pack(workspace, address)


@kernel
def keep_act_stacked(arguments: Any, address: int) -> None:
    """Leave the arguments of `act_stacked` at `address`, for a `PackedCall`."""
    pack(arguments, address)


@kernel
def act_stacked_packed(address: int, kind: Any) -> None:
    """`act_stacked` for a `PackedCall`."""
    act_stacked(*unpacked(address, kind))


@inlined
def act_stacked(
    stacked: StackedActors,
    sight: Sight,
    policy_input: PolicyInput,
    drawn: tuple[Noise, Floats],
    pieces: ActorPieces,
    queue: WorkQueue,
    thread: ActorThread,
) -> None:
    """Draw actions for the rows of all pieces, as one of the threads.

    `drawn`: the noise, and the actions [B, K]. Pieces go to the thread that takes them. A worker
    goes on as long as there is work in time.
    """
    worker = thread.thread_id - 1
    masks = thread.example.masks.shape[0]
    while worker < 0 or begins(queue.sync_flags, worker, thread.spin_limit):
        piece = add(queue.taken, 0, 1)
        while piece < queue.numbers[PIECES]:
            rows = pieces.rows[pieces.first[piece] : pieces.first[piece + 1]]
            if queue.numbers[ACTORS_SEE]:
                for n in range(rows.size):
                    show(policy_input, sight, masks, 0, rows[n], rows[n] + 1)
            actor, features = pieces.actors[piece], policy_input.rows[0]
            workspace = unpacked_like(thread.places[rows.size - 1], thread.example)
            decide_piece(stacked, actor, workspace, rows, features, drawn)
            piece = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread.spin_limit)
            return
        finish(queue.sync_flags, worker)
