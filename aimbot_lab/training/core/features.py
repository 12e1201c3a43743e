"""Where rays and target are, as seen by the agent; see `training.features` for the formulas."""

import math
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.elementary import exp
from aimbot_lab.foundation.jit import kernel
from aimbot_lab.training.core.parts import Floats

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


class Ranges(NamedTuple):
    """What maps columns to their range, and lengths in metres."""

    scale: Floats  # [D or more]
    shift: Floats  # [D or more]
    floor: np.float32  # the floor's side
    near: np.float32  # over which a ray's closeness falls to 1/e


@kernel
def see_from_agent(
    observations: Floats, own: Floats, columns: Columns, ranges: Ranges, features: Floats
) -> None:
    """Write `features` [N, D + 5] from raw `observations` [N, D].

    The first columns are those of `own` [N, D], scaled and shifted; ray distances become
    closeness, and the last five columns tell where the target lies.
    """
    size, nearness = observations.shape[1], -ONE / ranges.near
    for n in range(observations.shape[0]):
        seen, out, first = observations[n], features[n], own[n]
        for k in range(columns.rays):  # in double precision, to be rounded once, as torch does it
            out[k] = np.float64(first[k]) * np.float64(ranges.scale[k]) + ranges.shift[k]
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
