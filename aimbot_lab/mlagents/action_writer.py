"""What agents of ML-Agents do, written as actions of a world."""

import numpy as np

from aimbot_lab.foundation.world import Float32Array, WorldSpec
from aimbot_lab.mlagents.actions import ActionTuple
from aimbot_lab.mlagents.core.scaling import write_actions


class ActionWriter:
    """Writes actions of ML-Agents into `out` [n, width], those of as many agents of a world."""

    def __init__(self, out: Float32Array, spec: WorldSpec) -> None:
        self._nothing = ActionTuple(
            np.zeros((len(out), spec.continuous), np.float32),
            np.zeros((len(out), len(spec.branches)), np.int32),
        )
        low, high = spec.action_ranges
        self._middle = ((low + high) / 2).astype(np.float32)
        self._half = ((high - low) / 2).astype(np.float32)
        self._out = out

    def write(self, action: ActionTuple | None) -> None:
        """Write `action`, zeros where there is none."""
        given = self._nothing if action is None else action
        write_actions(given.discrete, given.continuous, self._middle, self._half, self._out)
