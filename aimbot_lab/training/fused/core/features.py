"""What the networks are shown of observations.

Formulas: `training.networks.features`, and of units `training.networks.parts.units`.
"""

import math
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.fast_math import exp
from aimbot_lab.foundation.kernels.jit import kernel, late_called, late_inlined
from aimbot_lab.training.fused.core.arrays import (
    Floats,
    KindLayout,
    Networks,
    PolicyInput,
    Whole,
)

ZERO, HALF, ONE, TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
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
    targets: Whole  # [V] columns that say whether a slot has a unit, after "nobody"; or none


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
