"""Acting: what the network is shown of an observation, and the actions of a team of threads.

Formulas of what the network is shown: `training.networks.encoders`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.jit import kernel, late_called, late_inlined, stored, stored_like
from aimbot_lab.foundation.kernels.lanes import exp
from aimbot_lab.foundation.kernels.rng import (
    GOLDEN,
    MIX_1,
    TO_UNIT,
    U11,
    UInt64Array,
    log,
    mix64,
    sin_cos,
)
from aimbot_lab.foundation.kernels.threads import add, begins, finish, wait_for_workers
from aimbot_lab.training.fused.core.arrays import (
    HALF,
    ONE,
    TWO,
    ZERO,
    Floats,
    KindLayout,
    Networks,
    Noise,
    PolicyInput,
    Sampled,
    States,
    Whole,
    Workspace,
)
from aimbot_lab.training.fused.core.layers import copy_state, take_states
from aimbot_lab.training.fused.core.network import (
    choose_actions,
    forward,
    heads_forward,
    take_shown,
)

U40 = np.uint64(40)
TO_UNIT_32 = 1.0 / 16777216.0  # 2**-24, below 1 in single precision, too
TAU = 2.0 * math.pi


@kernel
def fill_noise(uniform: Floats, normal: Floats, key: UInt64Array) -> None:
    """Write `uniform` [B, K] in [0, 1) and `normal` [B, C] (Box and Muller 1958).

    `key` [3]: the seed of the rollout, the number of the first row, and the step.
    """
    choices, columns = uniform.shape[1], normal.shape[1]
    first = key[2] * np.uint64(choices + 2 * columns)
    for row in range(uniform.shape[0]):
        word = mix64(key[0] ^ mix64((key[1] + np.uint64(row)) * GOLDEN + MIX_1)) + first * GOLDEN
        for k in range(choices):
            uniform[row, k] = (mix64(word) >> U40) * TO_UNIT_32
            word += GOLDEN
        for c in range(columns):
            length = math.sqrt(-2.0 * log(1.0 - (mix64(word) >> U11) * TO_UNIT))
            _, cosine = sin_cos(TAU * ((mix64(word + GOLDEN) >> U11) * TO_UNIT))
            normal[row, c] = length * cosine
            word += GOLDEN + GOLDEN


LEAST = np.float32(1e-6)


class Columns(NamedTuple):
    """Where an observation has what the features are made from."""

    base_x: int
    base_z: int
    x: int
    z: int
    cosine: int
    sine: int
    diameter: int
    rays: int  # the first distance; the others follow up to the end
    size: int  # D columns in all


class Ranges(NamedTuple):
    """What maps columns to their range, and lengths in metres."""

    scale: Floats  # [D]
    shift: Floats  # [D]
    floor: np.float32  # the floor's side
    near: np.float32  # over which a ray's closeness falls to 1/e


class Sight(NamedTuple):
    """How observations are seen."""

    columns: Columns
    ranges: Ranges


@late_inlined
def see(seen: Floats, own: Floats, sight: Sight, out: Floats) -> None:
    """Write `out` [D + 5 or more] from a raw observation `seen` [D or more].

    The first columns are those of `own` [D or more], scaled and shifted; ray distances become
    closeness, and five more columns tell where the target lies.
    """
    columns, ranges = sight.columns, sight.ranges
    size, nearness = columns.size, -ONE / ranges.near
    for k in range(columns.rays):  # in double precision, to be rounded once, as torch does it
        out[k] = np.float64(own[k]) * np.float64(ranges.scale[k]) + ranges.shift[k]
    for k in range(columns.rays, size):
        closeness = exp(seen[k] * nearness)
        out[k] = ONE - (TWO * closeness if seen[k] > ZERO else ZERO)
    to_x, to_z = seen[columns.base_x] - seen[columns.x], seen[columns.base_z] - seen[columns.z]
    cosine, sine = seen[columns.cosine], seen[columns.sine]
    ahead, right = to_x * sine + to_z * cosine, to_x * cosine - to_z * sine
    distance = max(np.float32(math.sqrt(to_x * to_x + to_z * to_z)), LEAST)
    exists = ONE if seen[columns.diameter] > ZERO else ZERO
    out[size] = exists * ahead / ranges.floor
    out[size + 1] = exists * right / ranges.floor
    out[size + 2] = exists * ahead / distance
    out[size + 3] = exists * right / distance
    out[size + 4] = exists * exp(distance * nearness)


@kernel
def see_from_agent(observations: Floats, own: Floats, sight: Sight, features: Floats) -> None:
    """Write `features` [N, D + 5] from raw `observations` [N, D]; `own` [N, D] as in `see`."""
    for n in range(observations.shape[0]):
        see(observations[n], own[n], sight, features[n])


class KindSight(NamedTuple):
    """How units of a kind are seen; features are numbers of the block's, -1 for none."""

    columns: Whole  # [V, features] of the observation
    fixed: Floats  # [V, numbers known of each slot]
    seen: int  # the feature that says whether there is a unit
    plain: Whole  # [P] features over their ranges
    scale: Floats  # [P]
    shift: Floats  # [P]
    labels: Whole  # [B] features, once for each value that they may have
    values: Floats  # [B] these values
    distance: int
    ahead: int
    right: int
    lengths: Floats  # [2] m over which a place is scaled; over which closeness falls to 1/e


class MaskSight(NamedTuple):
    """What is allowed of the first choices."""

    given: int  # columns behind the observation that say it
    first: int  # the first of these columns
    free: int  # choices before those of the target that are always allowed
    targets: Whole  # [V] columns that say whether a slot has a unit, after "no target"; or none


class NetworkSight(NamedTuple):
    """How observations are seen."""

    sight: Sight
    kept: Whole  # [plain columns] of the features that are shown; none where all are
    kinds: tuple[KindSight, ...]
    masks: MaskSight


@late_inlined
def show_place(ahead: np.float32, right: np.float32, lengths: Floats, out: Floats) -> None:
    """Write a place to `out` [5 or more]: over its scale, as a unit vector, and its closeness."""
    distance = max(np.float32(math.sqrt(ahead * ahead + right * right)), LEAST)
    out[0], out[1] = ahead / lengths[0], right / lengths[0]
    out[2], out[3] = ahead / distance, right / distance
    out[4] = exp(-distance / lengths[1])


@late_inlined
def show_unit(seen: Floats, slot: int, sight: KindSight, out: Floats) -> None:
    """Write to `out` [I] what is known of the unit in `slot` of the observation `seen`."""
    columns, at = sight.columns[slot], 0
    for k in range(sight.plain.size):  # rounded once, as torch does it
        value = np.float64(seen[columns[sight.plain[k]]])
        out[at] = value * np.float64(sight.scale[k]) + np.float64(sight.shift[k])
        at += 1
    for k in range(sight.labels.size):
        out[at] = ONE if seen[columns[sight.labels[k]]] == sight.values[k] else ZERO
        at += 1
    if sight.distance >= 0:
        distance = seen[columns[sight.distance]]
        closeness = exp(-distance / sight.lengths[1]) if distance > ZERO else ZERO
        out[at] = ONE - TWO * closeness
        at += 1
    if sight.ahead >= 0:
        ahead, right = seen[columns[sight.ahead]], seen[columns[sight.right]]
        show_place(ahead, right, sight.lengths, out[at:])
        at += 5
    for k in range(sight.fixed.shape[1]):
        out[at + k] = sight.fixed[slot, k]


@late_called
def show_kind(seen: Floats, layout: KindLayout, sight: KindSight, row: Floats) -> None:
    """Write the units of a kind to their columns of `row`; an empty slot is 0 and not read."""
    says = layout.column + layout.slots * layout.inputs
    for slot in range(layout.slots):
        there = sight.seen < 0 or seen[sight.columns[slot, max(sight.seen, 0)]] > HALF
        first = layout.column + slot * layout.inputs
        out = row[first : first + layout.inputs]
        row[says + slot] = ONE if there else ZERO
        if there:
            show_unit(seen, slot, sight, out)
        else:
            out[:] = ZERO


@late_inlined
def show_masks(seen: Floats, sight: MaskSight, row: Floats) -> None:
    """Write the masks to `row`."""
    for k in range(sight.given):
        row[k] = seen[sight.first + k]
    for k in range(sight.given, sight.free):
        row[k] = ONE
    for k in range(sight.targets.size):
        row[sight.free + k] = ONE if seen[sight.targets[k]] > HALF else ZERO


@late_called
def show(
    networks: Networks,
    sight: NetworkSight,
    policy_input: PolicyInput,
    step: int,
    rows: Whole,
    scratch: Floats,
) -> None:
    """Write what `networks` see of `rows` [n].

    `scratch` [D + 5] is overwritten.
    """
    layout, kinds = networks.layout, networks.kinds
    for number in rows:
        seen, row = policy_input.observations[number], policy_input.rows[step, number]
        out = row if sight.kept.size == 0 else scratch
        see(seen, policy_input.own[number], sight.sight, out)
        for k in range(sight.kept.size):
            row[k] = scratch[sight.kept[k]]
        for kind in range(layout.kinds):
            show_kind(seen, kinds[kind], sight.kinds[kind], row)
        show_masks(seen, sight.masks, row[layout.shown :])


AT_STEP, SEES, PIECES = range(3)  # of a queue's numbers: the step, whether inputs are written, ...
MULTIPLE = 8  # rows: a workspace is for a multiple of it


class Actors(NamedTuple):
    """Networks in the memory of a `PackedTable`."""

    places: Any  # [A] of this table
    example: Networks  # any of them, for its type


class ActorPieces(NamedTuple):
    """Rows sorted by who acts for them, in pieces of one actor each."""

    rows: Whole  # [B] as many of the first as the last piece's end says
    first: Whole  # [B + 1] where in `rows` each piece begins, and where the last one ends
    actors: Whole  # [B] of each piece


class ActorStep(NamedTuple):
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
    networks: Networks, workspace: Workspace, rows: Whole, step: ActorStep, number: int
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
def answer(networks: Networks, workspace: Workspace, rows: Whole, step: ActorStep) -> None:
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
    step: ActorStep,
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

    Arguments: Actors, NetworkSight, ActorStep, ActorPieces, PieceQueue, ActorThread. Pieces go to
    the thread that takes them. A worker goes on as long as there is work in time.
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
