"""A branch of the agent's own: which unit it aims at, worked into the world's mouse."""

from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from aimbot_lab.adapters.spaces import as_batch
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array, WorldSpec


class PlainCodec(Protocol):
    """A codec whose actions begin with the world's branches and end with the mouse."""

    space: Any
    bins: Float32Array

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write world actions to `out`."""
        ...

    def masks(self, branches: BoolArray) -> BoolArray:
        """Masks [B, choices] of the space's choices."""
        ...


class TargetCodec:
    """`plain` with a branch between the world's and the mouse: 0 nobody, k + 1 the unit in slot k.

    mouse used = clip(bearing of the unit / turn per unit + mouse, within its bounds), where the
    bearing is read from the observation that was acted on. So the mouse is the offset from the
    target. Nobody, and a slot without a unit, leave the mouse as it is.
    """

    def __init__(self, plain: PlainCodec, spec: WorldSpec) -> None:
        blocks = [block for block in spec.units if block.target]
        assert spec.turn_per_unit is not None, "the world has nothing to turn"
        self._plain, self.bins = plain, plain.bins
        self._seen = _columns([block.column_of(block.seen or "") for block in blocks])
        places = [(block, block.place or ("", "")) for block in blocks]
        self._ahead = _columns([block.column_of(place[0]) for block, place in places])
        self._right = _columns([block.column_of(place[1]) for block, place in places])
        self._branches, self._mouse = len(spec.branches), len(spec.branches)
        self._turn = np.float32(spec.turn_per_unit)
        self._low, self._high = (bound[0] for bound in spec.action_bounds)
        self.space = self._with_target(plain.space)

    def _with_target(self, space: Any) -> spaces.Space[Any]:
        at, slots = self._branches, len(self._seen)
        if isinstance(space, spaces.MultiDiscrete):
            return spaces.MultiDiscrete(np.insert(space.nvec, at, 1 + slots))
        return spaces.Box(np.insert(space.low, at, 0.0), np.insert(space.high, at, slots))

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write `actions` [B, branches + 1 + mouse] to `out`; `observations` [B, D] were seen.

        Raises ActionError for another shape and a target that does not exist.
        """
        assert observations is not None, "a target is chosen from what is seen"
        given = as_batch(actions, (len(out), out.shape[1] + 1), "actions")
        target = given[:, self._branches]
        wrong = ~np.isin(target, np.arange(1 + len(self._seen)))
        if wrong.any():
            row = int(wrong.argmax())
            raise ActionError(
                f"environment {row}: target is {target[row]:g}; "
                f"allowed is one of 0 to {len(self._seen)}"
            )
        self._plain.to_world(np.delete(given, self._branches, axis=1), out)
        self._turn_to(target.astype(np.int64) - 1, out, observations)

    def _turn_to(self, slots: Int64Array, out: Float32Array, observations: Float32Array) -> None:
        """Add to the mouse of `out` the turn to the units in `slots` [B], -1 for nobody."""
        rows = np.arange(len(slots))
        chosen = (slots >= 0) & (observations[rows, self._seen[slots]] > 0.5)
        ahead, right = (observations[rows, at[slots]] for at in (self._ahead, self._right))
        mouse = np.arctan2(right, ahead) / self._turn + out[:, self._mouse]
        used = np.clip(mouse, self._low, self._high)
        out[:, self._mouse] = np.where(chosen, used, out[:, self._mouse])

    def masks(self, branches: BoolArray) -> BoolArray:
        """Masks [B, choices]: those of `plain`, and any target."""
        free = np.ones((len(branches), 1 + len(self._seen)), np.bool_)
        count = branches.shape[1]
        masks = self._plain.masks(branches)
        return np.concatenate([masks[:, :count], free, masks[:, count:]], axis=1)


def _columns(parts: list[Int64Array]) -> Int64Array:
    return np.concatenate(parts)
