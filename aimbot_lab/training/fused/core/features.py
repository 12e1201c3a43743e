"""Where rays and target are, as seen by the agent; formulas: `training.networks.features`."""

import math
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.fast_math import exp
from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.training.fused.core.parts import Floats

ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
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


@inlined
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
