"""The action spaces that stable-baselines3 is shown, and how their actions become the world's."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium import spaces

from aimbot_lab.adapters.spaces import BinnedActions, as_batch
from aimbot_lab.adapters.target_aim import TargetCodec
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import BoolArray, Float32Array, WorldSpec

FARTHEST = 1e30  # in the place of no bound, which stable-baselines3 does not take
LearnerActions = Literal["bins", "flat", "hybrid", "target_bins", "target_hybrid"]


class LearnerCodec(Protocol):
    """A space of actions for one row, and the way from it to the world."""

    @property
    def space(self) -> spaces.Space[Any]:
        """Actions of one row."""
        ...

    @property
    def bins(self) -> Float32Array:
        """Values [C, K] that each continuous column is chosen from; K is 0 where it is a number."""
        ...

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write `actions`, a batch of the space's, to `out` [B, branches + continuous].

        `observations` [B, D] are what was acted on; codecs without a target leave them aside.
        """
        ...

    def masks(self, branches: BoolArray) -> BoolArray:
        """Masks [B, choices] of the space's choices, from those of the world's branches."""
        ...


def learner_codec(
    spec: WorldSpec, kind: LearnerActions, aim_bins: Sequence[float] | None
) -> LearnerCodec:
    """The codec of `kind`.

    `bins` is a `MultiDiscrete` of the world's branches and one index into `aim_bins`; `flat`
    counts all its combinations as one `Discrete`; `hybrid` is a `Box` with the world's own
    columns, in which branches are whole numbers. `target_bins` and `target_hybrid` have a branch
    after the world's that chooses a unit to aim at.
    """
    if kind in ("hybrid", "target_hybrid"):
        hybrid = HybridColumns(spec)
        return hybrid if kind == "hybrid" else TargetCodec(hybrid, spec)
    binned = BranchesAndBins(spec, aim_bins)
    if kind == "target_bins":
        return TargetCodec(binned, spec)
    return FlatChoice(binned) if kind == "flat" else binned


class BranchesAndBins(BinnedActions):
    """Aim in bins, with masks; no bin is ever masked."""

    def masks(self, branches: BoolArray) -> BoolArray:
        """Masks [B, sum of branches + bins]."""
        bins = int(self.space.nvec[self._branches :].sum())
        return np.concatenate([branches, np.ones((len(branches), bins), np.bool_)], axis=1)


class FlatChoice:
    """Every combination of branches and aim bin as one number; the bin counts fastest."""

    def __init__(self, binned: BranchesAndBins) -> None:
        self._binned, self.bins = binned, binned.bins
        self._sizes = tuple(int(size) for size in binned.space.nvec)
        self.space = spaces.Discrete(int(np.prod(self._sizes)))

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write `actions` [B] to `out` [B, branches + 1]. Raises ActionError beyond the space."""
        del observations
        given = as_batch(actions, out.shape[:1], "actions")
        wrong = ~np.isin(given, np.arange(self.space.n))
        if wrong.any():
            row = int(wrong.argmax())
            raise ActionError(
                f"environment {row}: action is {given[row]:g}; "
                f"allowed is one of 0 to {self.space.n - 1}"
            )
        indices = np.unravel_index(given.astype(np.int64), self._sizes)
        self._binned.to_world(np.stack(indices, axis=1), out)

    def masks(self, branches: BoolArray) -> BoolArray:
        """Masks [B, n]: a combination is allowed where all its parts are."""
        masks = np.ones((len(branches), 1), np.bool_)
        parts = np.split(self._binned.masks(branches), np.cumsum(self._sizes)[:-1], axis=1)
        for part in parts:
            masks = (masks[:, :, None] & part[:, None, :]).reshape(len(branches), -1)
        return masks


class HybridColumns:
    """The world's own action columns in one `Box`: branch indices first, then the mouse."""

    def __init__(self, spec: WorldSpec) -> None:
        self.bins = np.zeros((spec.continuous, 0), np.float32)
        first, last = (np.clip(ends, -FARTHEST, FARTHEST) for ends in spec.action_bounds)
        low = np.concatenate([np.zeros(len(spec.branches)), first]).astype(np.float32)
        high = np.concatenate([np.array(spec.branches) - 1, last]).astype(np.float32)
        self.space = spaces.Box(low, high)

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write `actions` [B, branches + continuous] to `out`; the world itself judges them."""
        del observations
        out[:] = as_batch(actions, out.shape, "actions")

    def masks(self, branches: BoolArray) -> BoolArray:
        """Masks [B, sum of branches]: the mouse has no choices to mask."""
        return branches.copy()
