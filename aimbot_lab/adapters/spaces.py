"""Gymnasium spaces of a world, and how a space's actions become the world's."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from aimbot_lab.foundation.errors import ActionError, ConfigurationError
from aimbot_lab.foundation.world import Float32Array, WorldSpec

AIM_SHARES = (-1.0, -0.5, -0.2, -0.08, -0.02, 0.0, 0.02, 0.08, 0.2, 0.5, 1.0)
"""The usual aim bins, as shares of the mouse limit."""


def observation_space(spec: WorldSpec, *, masks: bool = False) -> spaces.Box:
    """Raw observations [D] within their declared ranges; then, with `masks`, the branches'."""
    count = sum(spec.branches) if masks else 0
    low = np.concatenate([spec.observation_low, np.zeros(count, np.float32)])
    high = np.concatenate([spec.observation_high, np.ones(count, np.float32)])
    return spaces.Box(low, high, dtype=np.float32)


class BinnedActions:
    """Continuous columns in bins: `MultiDiscrete` of the world's branches and an index a column.

    Without `aim_bins`, eleven values between the world's limits, `AIM_SHARES`. Where a column has
    bounds of its own, bins are taken for shares of it: -`continuous_limit` is its lower bound.
    """

    def __init__(self, spec: WorldSpec, aim_bins: Sequence[float] | None = None) -> None:
        values = _bin_values(spec.continuous_limit, aim_bins)
        self.bins = _by_column(values, spec)
        self._count = len(values)
        self._columns = np.arange(spec.continuous)
        self._branches = len(spec.branches)
        self.space = spaces.MultiDiscrete([*spec.branches, *[self._count] * spec.continuous])

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write `actions` [B, branches + C] as the world's actions to `out`, of the same shape.

        Raises ActionError for another shape and for a bin that does not exist; the world itself
        checks the branches.
        """
        del observations
        given = as_batch(actions, out.shape, "actions")
        index = given[:, self._branches :]
        missing = (index < 0) | (index >= self._count) | (index % 1 != 0)
        if missing.any():
            row, column = np.argwhere(missing)[0]
            raise ActionError(
                f"environment {row}: aim bin is {index[row, column]:g}; "
                f"allowed is one of 0 to {self._count - 1}"
            )
        out[:, : self._branches] = given[:, : self._branches]
        out[:, self._branches :] = self.bins[self._columns, index.astype(np.int64)]


def _by_column(values: Float32Array, spec: WorldSpec) -> Float32Array:
    """The bins [C, K] of each continuous column, of `values` [K] between -limit and limit."""
    if not spec.continuous_bounds:
        return np.tile(values, (spec.continuous, 1))
    low, high = (bound[:, None] for bound in spec.action_ranges)
    shares = (values / np.float32(spec.continuous_limit) + 1) / 2
    return np.asarray(low + shares * (high - low), np.float32)


def _bin_values(limit: float, aim_bins: Sequence[float] | None) -> Float32Array:
    if aim_bins is None:
        return np.array([share * limit for share in AIM_SHARES], np.float32)
    try:
        values = np.array(aim_bins, np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ConfigurationError(
            f"aim_bins must be a list of finite numbers (got {aim_bins!r:.80})"
        )
    if np.abs(values).max() > limit:
        raise ConfigurationError(f"aim_bins: values go beyond the mouse limit of {limit:g}")
    return values.astype(np.float32)


def as_batch(values: Any, shape: tuple[int, ...], name: str) -> npt.NDArray[Any]:
    """`values` as an array of `shape`; a single row may come without its first axis.

    Raises ActionError for any other shape.
    """
    array = np.asarray(values)
    if shape[0] == 1 and array.shape == shape[1:]:
        return array[None]
    if array.shape != shape:
        raise ActionError(f"{name}: the shape is {array.shape}; it must be {shape}")
    return array
