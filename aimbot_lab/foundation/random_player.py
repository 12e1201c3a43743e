"""A player that acts at random: the baseline of every world."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Float32Array, WorldSpec


class RandomAgent:
    """Draws every branch and continuous column uniformly; the same actions for the same seed."""

    def __init__(self, spec: WorldSpec, seed: int) -> None:
        self._branches = spec.branches
        limit, self._columns = spec.continuous_limit, spec.continuous
        self._low: Any
        self._high: Any
        self._low, self._high = spec.action_ranges if spec.continuous_bounds else (-limit, limit)
        self._random = np.random.default_rng(seed)

    def __call__(
        self, observations: Float32Array, _starts: BoolArray | None = None
    ) -> Float32Array:
        """The next actions [N, A]; of `observations` [N, D] only the number of rows counts."""
        rows = len(observations)
        discrete = self._random.integers(0, self._branches, (rows, len(self._branches)))
        continuous = self._random.uniform(self._low, self._high, (rows, self._columns))
        return np.column_stack([discrete, continuous]).astype(np.float32)
