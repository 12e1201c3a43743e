"""The action spaces of the Gymnasium adapters, and how their actions become the world's."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium import spaces

from aimbot_lab.adapters.spaces import BinnedActions, as_batch
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Float32Array, WorldSpec

ActionKind = Literal["bins", "hybrid"]

BRANCHES, MOUSE = "branches", "mouse"  # keys of a hybrid action
LARGEST = float(np.finfo(np.float32).max)


class ActionCodec(Protocol):
    """A space of actions for one row, and the way from it to the world."""

    @property
    def space(self) -> spaces.Space[Any]:
        """Actions of one row."""
        ...

    def to_world(self, actions: Any, out: Float32Array) -> None:
        """Write `actions`, a batch of the space's or a single one, to `out` [B, A].

        Raises ActionError for a wrong shape or an aim bin that does not exist; the world
        itself judges the rest.
        """
        ...


def action_codec(
    spec: WorldSpec, kind: ActionKind, aim_bins: Sequence[float] | None
) -> ActionCodec:
    """The codec of `kind`; without `aim_bins`, eleven values between the limits of the mouse.

    `bins` is a `MultiDiscrete` of the world's branches and one index into the aim bins, which
    every library can learn. `hybrid` is the world's own action: a `Dict` of `branches`
    (`MultiDiscrete`) and `mouse` (`Box`).
    """
    if kind == "hybrid":
        if aim_bins is not None:
            raise ConfigurationError('aim_bins: action="hybrid" has none; leave them out')
        return HybridActions(spec)
    if kind != "bins":
        raise ConfigurationError(f"action must be bins or hybrid (got {kind!r})")
    return BinnedActions(spec, aim_bins)


class HybridActions:
    """The world's branches and its continuous columns, side by side."""

    def __init__(self, spec: WorldSpec) -> None:
        self._branches = len(spec.branches)
        self.space = spaces.Dict(
            {
                BRANCHES: spaces.MultiDiscrete(list(spec.branches)),
                MOUSE: spaces.Box(*spec.action_bounds, dtype=np.float32),
            }
        )

    def to_world(self, actions: Any, out: Float32Array) -> None:
        """Write `actions`, {"branches": [B, branches], "mouse": [B, continuous]}, to `out`."""
        rows, width = out.shape
        branches = as_batch(actions[BRANCHES], (rows, self._branches), BRANCHES)
        mouse = as_batch(actions[MOUSE], (rows, width - self._branches), MOUSE)
        out[:, : self._branches] = branches
        # A finite number stays one in single precision; the world itself refuses the others.
        finite = np.where(np.isfinite(mouse), np.clip(mouse, -LARGEST, LARGEST), mouse)
        out[:, self._branches :] = finite
