"""Actions of several networks of parts, each for rows of its own, shared by threads."""

from typing import Any, NamedTuple

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import called, inlined, kernel
from aimbot_lab.foundation.kernels.packed import pack, unpacked, unpacked_like
from aimbot_lab.foundation.kernels.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.act_stacked import ACTORS_SEE, PIECES, ActorPieces
from aimbot_lab.training.fused.core.branches import choose_actions
from aimbot_lab.training.fused.core.gather import spread
from aimbot_lab.training.fused.core.parts import Floats, Noise, PolicyInput, Whole, WorkQueue
from aimbot_lab.training.fused.parts.core.arrays import PartsNetworks, PartsWorkspace, States
from aimbot_lab.training.fused.parts.core.encoders import encode, take_inputs
from aimbot_lab.training.fused.parts.core.heads import heads_forward
from aimbot_lab.training.fused.parts.core.lstm import remember
from aimbot_lab.training.fused.parts.core.show import PartsSight, show
from aimbot_lab.training.fused.parts.core.states import copy_state, give_states, take_states

STEP = 8  # rows: a workspace is for a multiple of it


class PartsActors(NamedTuple):
    """Networks in the memory of a `PackedTable`."""

    places: Any  # [P] of this table
    example: PartsNetworks  # any of them, for its type


class StackedThread(NamedTuple):
    """What a thread works with; its workspaces are for STEP rows, twice, three times as many ..."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up
    places: Any  # [W] of the table of workspaces
    example: PartsWorkspace  # any of them, for its type
    noise: Noise  # [N, ...] of the rows of the largest one
    scratch: Floats  # [D + 5] features of an observation


class Seen(NamedTuple):
    """What networks act on."""

    policy_input: PolicyInput
    states: States


@inlined
def take_rows(
    whole: PartsNetworks, workspace: PartsWorkspace, rows: Whole, seen: Seen, count: int
) -> None:
    """Bring inputs, masks and states of `rows` [n] together, the last one again up to `count`."""
    for n in range(count):
        row = rows[min(n, rows.size - 1)]
        features = seen.policy_input.rows[0, row]
        take_inputs(whole, workspace, features, n)
        spread(features, whole.layout.shown, workspace.samples.masks, n)
        workspace.memories[0].kept[n] = seen.states.kept[row]
        copy_state(seen.states.before[row], workspace.carried[n])


@called
def decide_rows(
    whole: PartsNetworks,
    workspace: PartsWorkspace,
    rows: Whole,
    seen: Seen,
    noise: Noise,
    drawn: tuple[Noise, Floats],
) -> None:
    """Write actions and next states of `rows` [n]; `noise` [n or more] is overwritten.

    `drawn`: the noise, and the actions [B, K].
    """
    count = workspace.ones.size
    take_rows(whole, workspace, rows, seen, count)
    give_states(whole, workspace)
    encode(whole, workspace)
    remember(whole, workspace)
    heads_forward(whole, workspace)
    for n in range(rows.size):
        take_states(whole, workspace, n)
        copy_state(workspace.carried[n], seen.states.after[rows[n]])
        for branch in range(noise.uniform.shape[1]):
            noise.uniform[n, branch] = drawn[0].uniform[rows[n], branch]
        for column in range(noise.normal.shape[1]):
            noise.normal[n, column] = drawn[0].normal[rows[n], column]
    actions = workspace.samples.actions
    choose_actions(workspace.head, noise, actions, whole.starts, whole.net.log_std)
    for n in range(rows.size):
        for k in range(actions.shape[0]):
            drawn[1][rows[n], k] = actions[k, n]


@kernel
def keep_networks(networks: Any, address: int) -> None:
    """Leave `networks` at `address`, for a `PackedTable`."""
    pack(networks, address)


@kernel
def keep_workspace(workspace: Any, address: int) -> None:
    """Leave `workspace` at `address`, for a `PackedTable`."""
    pack(workspace, address)


@kernel
def keep_act_parts_stacked(arguments: Any, address: int) -> None:
    """Leave the arguments of `act_parts_stacked` at `address`, for a `PackedCall`."""
    pack(arguments, address)


@kernel
def act_parts_stacked_packed(address: int, kind: Any) -> None:
    """`act_parts_stacked` for a `PackedCall`."""
    act_parts_stacked(*unpacked(address, kind))


@inlined
def act_parts_stacked(
    actors: PartsActors,
    sight: PartsSight,
    seen: Seen,
    drawn: tuple[Noise, Floats],
    pieces: ActorPieces,
    queue: WorkQueue,
    thread: StackedThread,
) -> None:
    """What `act_stacked` does, and the next state of every row of a piece."""
    worker = thread.thread_id - 1
    while worker < 0 or begins(queue.sync_flags, worker, thread.spin_limit):
        piece = add(queue.taken, 0, 1)
        while piece < queue.numbers[PIECES]:
            rows = pieces.rows[pieces.first[piece] : pieces.first[piece + 1]]
            whole = unpacked_like(actors.places[pieces.actors[piece]], actors.example)
            if queue.numbers[ACTORS_SEE]:
                for n in range(rows.size):
                    one = (rows[n], rows[n] + 1)
                    show(whole, sight, seen.policy_input, 0, one, thread.scratch)
            place = thread.places[(rows.size - 1) // STEP]
            workspace = unpacked_like(place, thread.example)
            decide_rows(whole, workspace, rows, seen, thread.noise, drawn)
            piece = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread.spin_limit)
            return
        finish(queue.sync_flags, worker)
