"""Gymnasium spaces of a world, and how a space's actions become the world's."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Float32Array, WorldSpec


def observation_space(spec: WorldSpec) -> spaces.Box:
    """Raw observations [D] within their declared ranges."""
    return spaces.Box(spec.observation_low, spec.observation_high, dtype=np.float32)


class BinnedActions:
    """Aim in bins: `MultiDiscrete` of the world's branches and one index into `aim_bins`."""

    def __init__(self, spec: WorldSpec, aim_bins: Sequence[float]) -> None:
        self._bins = np.array(aim_bins, np.float32)
        self._branches = len(spec.branches)
        if np.abs(self._bins).max() > spec.continuous_limit:
            raise ConfigurationError(
                f"train.aim_bins: values go beyond the mouse limit of {spec.continuous_limit:g}"
            )
        self.space = spaces.MultiDiscrete([*spec.branches, len(self._bins)])

    def to_world(self, actions: npt.NDArray[np.int64], out: Float32Array) -> None:
        """Write `actions` [B, branches + 1] as the world's actions [B, branches + 1] to `out`."""
        out[:, : self._branches] = actions[:, : self._branches]
        out[:, self._branches] = self._bins[actions[:, self._branches]]
