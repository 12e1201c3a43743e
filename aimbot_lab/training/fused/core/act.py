"""Actions of one network or of several, each for rows of its own, shared by threads."""

from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.atomic import add
from aimbot_lab.foundation.kernels.jit import kernel, late_inlined
from aimbot_lab.foundation.kernels.packed import stored, stored_like
from aimbot_lab.foundation.kernels.spin_sync import begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.arrays import (
    Floats,
    Networks,
    Noise,
    PolicyInput,
    Sampled,
    States,
    Whole,
    Workspace,
)
from aimbot_lab.training.fused.core.branches import choose_actions
from aimbot_lab.training.fused.core.features import show
from aimbot_lab.training.fused.core.heads import heads_forward
from aimbot_lab.training.fused.core.lstm import copy_state, take_states
from aimbot_lab.training.fused.core.network import forward, take_shown

AT_STEP, SEES, PIECES = range(3)  # of a queue's numbers: the step, whether inputs are written, ...
MULTIPLE = 8  # rows: a workspace is for a multiple of it

ZERO = np.float32(0.0)


class Actors(NamedTuple):
    """Networks in the memory of a `PackedTable`."""

    places: Any  # [A] of this table
    example: Networks  # any of them, for its type


class ActorPieces(NamedTuple):
    """Rows sorted by who acts for them, in pieces of one actor each."""

    rows: Whole  # [B] as many of the first as the last piece's end says
    first: Whole  # [B + 1] where in `rows` each piece begins, and where the last one ends
    actors: Whole  # [B] of each piece


class Step(NamedTuple):
    """What actors act on in a step, and what comes of it: the states `after`, and `sampled`."""

    policy_input: PolicyInput
    states: States
    noise: Noise
    sampled: Sampled


class ActorThread(NamedTuple):
    """What a thread acts with; its workspaces are for MULTIPLE rows, twice, three times as many."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up
    places: Any  # [W] of the `PackedTable` of workspaces
    example: Workspace  # any of them, for its type
    noise: Noise  # [N, ...] of the rows of the largest one
    scratch: Floats  # [columns + 5] features of an observation


@late_inlined
def take_rows(
    networks: Networks, workspace: Workspace, rows: Whole, step: Step, number: int
) -> None:
    """Bring inputs, masks and states of `rows` [n] together, the last one again up to the end.

    `number`: of the step in the rollout.
    """
    states = step.states
    for n in range(workspace.ones.size):
        row = rows[min(n, rows.size - 1)]
        seen = step.policy_input.rows[number, row]
        take_shown(networks, workspace.samples, workspace.kinds, seen, n)
        if networks.layout.memories > 0:
            workspace.memories[0].kept[n] = states.kept[row]
            copy_state(states.before[row], workspace.carried[n])


@late_inlined
def answer(networks: Networks, workspace: Workspace, rows: Whole, step: Step) -> None:
    """Write states, actions and what the head says of these to `rows` [n]."""
    head, actions, sampled = workspace.head, workspace.samples.actions, step.sampled
    branches, ratios = actions.shape[0], sampled.log_probs.shape[1]
    for n in range(rows.size):
        row = rows[n]
        if networks.layout.memories > 0:
            take_states(networks, workspace, n)
            copy_state(workspace.carried[n], step.states.after[row])
        if head.values.size > 0:
            sampled.values[row, 0] = head.values[n, 0]
        whole = ZERO
        for k in range(branches):
            sampled.actions[row, k] = actions[k, n]
            whole += head.log_probs[k, n]
        for k in range(ratios):
            sampled.log_probs[row, k] = whole if ratios == 1 else head.log_probs[k, n]


@late_inlined
def decide(
    networks: Networks,
    workspace: Workspace,
    rows: Whole,
    step: Step,
    number: int,
    noise: Noise,
) -> None:
    """Write actions, values and next states of `rows` [n]; `noise` [n or more] is overwritten."""
    take_rows(networks, workspace, rows, step, number)
    forward(networks, workspace)
    heads_forward(networks, workspace)
    for n in range(rows.size):
        for branch in range(noise.uniform.shape[1]):
            noise.uniform[n, branch] = step.noise.uniform[rows[n], branch]
        for column in range(noise.normal.shape[1]):
            noise.normal[n, column] = step.noise.normal[rows[n], column]
    head, actions, log_std = workspace.head, workspace.samples.actions, networks.net.log_std
    choose_actions(head, noise, actions, networks.starts, log_std)
    answer(networks, workspace, rows, step)


@kernel
def act_packed(address: int, kind: Any) -> None:
    """Draw actions for the rows of all pieces, as one of the threads; for a `PackedCall`.

    Arguments: Actors, NetworkSight, Step, ActorPieces, WorkQueue, ActorThread. Pieces go to the
    thread that takes them. A worker goes on as long as there is work in time.
    """
    actors, sight, step, pieces, queue, thread = stored(address, kind)
    worker = thread.thread_id - 1
    while worker < 0 or begins(queue.sync_flags, worker, thread.spin_limit):
        number = queue.numbers[AT_STEP]
        piece = add(queue.taken, 0, 1)
        while piece < queue.numbers[PIECES]:
            rows = pieces.rows[pieces.first[piece] : pieces.first[piece + 1]]
            networks = stored_like(actors.places[pieces.actors[piece]], actors.example)
            if queue.numbers[SEES]:
                show(networks, sight, step.policy_input, number, rows, thread.scratch)
            place = thread.places[(rows.size - 1) // MULTIPLE]
            workspace = stored_like(place, thread.example)
            decide(networks, workspace, rows, step, number, thread.noise)
            piece = add(queue.taken, 0, 1)
        if worker < 0:
            wait_for_workers(queue.sync_flags, thread.spin_limit)
            return
        finish(queue.sync_flags, worker)
