"""Where rays and target are, as seen by the agent; see `training.features` for the formulas."""

import math
from typing import NamedTuple

import numpy as np

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


@kernel
def see_from_agent(
    observations: Floats, columns: Columns, features: Floats, floor: np.float32, near: np.float32
) -> None:
    """Write all but the first columns of `features` [N, D + 5] from raw `observations` [N, D].

    Ray distances become closeness, the last five columns tell where the target lies; `floor` and
    `near` in metres.
    """
    size = observations.shape[1]
    for n in range(observations.shape[0]):
        seen, out = observations[n], features[n]
        for k in range(columns.rays, size):
            out[k] = ONE
            if seen[k] > ZERO:
                out[k] -= TWO * np.float32(math.exp(-seen[k] / near))
        to_x, to_z = seen[columns.base_x] - seen[columns.x], seen[columns.base_z] - seen[columns.z]
        cosine, sine = seen[columns.cosine], seen[columns.sine]
        ahead, right = to_x * sine + to_z * cosine, to_x * cosine - to_z * sine
        distance = max(np.float32(math.sqrt(to_x * to_x + to_z * to_z)), LEAST)
        exists = ONE if seen[columns.diameter] > ZERO else ZERO
        out[size] = exists * ahead / floor
        out[size + 1] = exists * right / floor
        out[size + 2] = exists * ahead / distance
        out[size + 3] = exists * right / distance
        out[size + 4] = exists * np.float32(math.exp(-distance / near))
