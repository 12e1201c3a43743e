"""How an environment takes an action whose numbers are the columns of a world."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class EnvironmentActions:
    """Actions of an environment in its own units, as plain data.

    A branch's index 0 is its `starts`; the continuous columns that follow go from -1 to 1, from
    `low` to `high`. An action has `shape` and NumPy's `dtype`.
    """

    shape: tuple[int, ...]
    dtype: str
    starts: tuple[int, ...] = ()  # smallest value of each branch
    low: tuple[float, ...] = ()  # [C] of the continuous columns; whole numbers where `dtype` is
    high: tuple[float, ...] = ()  # [C]

    @property
    def is_whole(self) -> bool:
        """Whether an action holds whole numbers alone."""
        return np.dtype(self.dtype).kind in "iub"

    @cached_property
    def _exact(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        kind = np.dtype(self.dtype)
        return np.array(self.low, kind), np.array(self.high, kind)

    def scaled(self, columns: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The continuous `columns` [B, C], from -1 to 1, in the environment's units."""
        share = (np.clip(columns, -1.0, 1.0).astype(np.float64) + 1.0) / 2.0
        low, high = (one.astype(np.float64) for one in self._exact)
        scaled: npt.NDArray[np.float64] = low * (1.0 - share) + high * share
        return scaled  # without the difference of bounds, which may be infinite

    def flat(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """World actions [B, A] in the environment's units and type [B, A], within its bounds."""
        count, kind = len(self.starts), np.dtype(self.dtype)
        branches = actions[:, :count].astype(np.int64) + np.array(self.starts, np.int64)
        if not self.low:
            return branches.astype(kind)
        values, (low, high) = self.scaled(actions[:, count:]), self._exact
        with np.errstate(invalid="ignore"):  # beyond what whole numbers hold, where a bound is
            inner = (np.rint(values) if self.is_whole else values).astype(kind)
        inner = np.where(values <= low, low, np.where(values >= high, high, inner))
        return inner if not count else np.column_stack([branches, inner])

    def of(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """World actions [B, A] as the environment takes them, [B, *shape]."""
        return self.flat(actions).reshape(len(actions), *self.shape)
