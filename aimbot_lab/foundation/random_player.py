"""A player that acts at random: the baseline of every world."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.world import BatchWorld, BoolArray, Float32Array, Int64Array, WorldSpec


class RandomAgent:
    """Draws every branch and continuous column uniformly; the same actions for the same seed.

    With `masked`, a world, only choices that make sense in its present state are drawn.
    """

    def __init__(self, spec: WorldSpec, seed: int, *, masked: BatchWorld | None = None) -> None:
        self._masked = masked if spec.can("masks") else None
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
        if self._masked is not None:
            discrete = self._allowed(self._masked, rows)
        continuous = self._random.uniform(self._low, self._high, (rows, self._columns))
        return np.column_stack([discrete, continuous]).astype(np.float32)

    def _allowed(self, world: BatchWorld, rows: int) -> Int64Array:
        """Choices [N, branches] that the masks of `world` allow."""
        masks = np.ones((rows, sum(self._branches)), np.bool_)
        world.action_masks(masks)
        parts = np.split(masks, np.cumsum(self._branches)[:-1], axis=1)
        order = [np.where(part, self._random.random(part.shape), -1.0) for part in parts]
        return np.column_stack([one.argmax(axis=1) for one in order])
