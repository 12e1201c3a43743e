"""Gymnasium spaces of a world, and how a space's actions become the world's.

`action_codec` is for Gymnasium's and PettingZoo's environments, `learner_codec` for learners of
stable-baselines3: the environment's own space, bins, the world's columns, and a target to aim at.
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from aimbot_lab.foundation.errors import ActionError, ConfigurationError
from aimbot_lab.foundation.world import (
    COLUMNS,
    BoolArray,
    Float32Array,
    Int64Array,
    Observations,
    WorldSpec,
    columns_of,
)

AIM_SHARES = (-1.0, -0.5, -0.2, -0.08, -0.02, 0.0, 0.02, 0.08, 0.2, 0.5, 1.0)
"""The usual aim bins, as shares of the mouse limit."""
ActionKind = Literal["bins", "hybrid"]
BRANCHES, MOUSE = "branches", "mouse"  # keys of a hybrid action
LARGEST = float(np.finfo(np.float32).max)
FARTHEST = 1e30  # in the place of no bound, which stable-baselines3 does not take
LearnerActions = Literal["own", "numbers", "bins", "flat", "hybrid", "target_bins", "target_hybrid"]


class ObservationCodec:
    """How a seat's observation is shown: its columns [D], within their declared ranges.

    Where a world shows pictures, or with `blocks`, it is a Dict of its blocks, or a single one
    where there is nothing else. With `joined` the columns stay together there, as `columns`.
    Pictures are [H, W, C], and [C, H, W] with `channels_first`. With `masks` those of the branches
    are the last columns.
    """

    space: spaces.Space[Any]
    names: tuple[str, ...]
    """The entries of the Dict; () without pictures."""
    columns: dict[str, slice]
    """Which columns an entry is; a picture is none."""
    alone: bool
    """Whether the only entry is shown as it is."""

    def __init__(
        self,
        spec: WorldSpec,
        *,
        masks: bool = False,
        channels_first: bool = False,
        joined: bool = False,
        blocks: bool = False,
    ) -> None:
        count = sum(spec.branches) if masks else 0
        low = np.concatenate([spec.observation_low, np.zeros(count, np.float32)])
        high = np.concatenate([spec.observation_high, np.ones(count, np.float32)])
        self._first = channels_first
        self._contiguous = {block.name for block in spec.pictures if block.channels_first}
        self.columns = {}
        shown: dict[str, spaces.Space[Any]] = {}
        if joined and len(low):
            self.columns[COLUMNS] = slice(None)
            shown[COLUMNS] = spaces.Box(low, high, dtype=np.float32)
        first = 0
        self._in_blocks = blocks or bool(spec.pictures)
        for block in spec.observation_blocks if self._in_blocks else ():
            if block.kind == "image":
                height, width, channels = block.shape
                shape = (channels, height, width) if channels_first else block.shape
                shown[block.name] = spaces.Box(0, 255, shape, np.uint8)
            elif not joined:
                at = self.columns[block.name] = slice(first, first := first + block.columns)
                shown[block.name] = spaces.Box(low[at], high[at], dtype=np.float32)
        self.names, self.alone = tuple(shown), len(shown) == 1
        if not self._in_blocks:
            self.space = spaces.Box(low, high, dtype=np.float32)
        elif self.alone:
            (self.space,) = shown.values()
        else:
            self.space = spaces.Dict(list(shown.items()))

    def shown(self, observations: Observations, masks: BoolArray | None = None) -> Any:
        """`observations` [N] as the space has them, with `masks` [N, choices] where it has these.

        An array, or a dict of arrays; those without masks are views.
        """
        columns = columns_of(observations)
        if masks is not None:
            columns = np.concatenate([columns, masks], axis=1, dtype=np.float32)
        if not self._in_blocks:
            return columns
        found = {name: self._part(name, observations, columns) for name in self.names}
        return found[self.names[0]] if self.alone else found

    def _part(self, name: str, observations: Observations, columns: Float32Array) -> Any:
        if name in self.columns:
            return columns[:, self.columns[name]]
        if not self._first:
            return observations[name]
        moved = np.moveaxis(observations[name], 3, 1)
        return np.ascontiguousarray(moved) if name in self._contiguous else moved

    def row(self, observations: Observations, seat: int, masks: BoolArray | None = None) -> Any:
        """What that seat alone is shown, copied; `masks` [1, choices] are its own."""
        found = self.shown(observations[seat : seat + 1].copy(), masks)
        if isinstance(found, dict):
            return {name: part[0] for name, part in found.items()}
        return found[0]


def observation_space(
    spec: WorldSpec, *, masks: bool = False, joined: bool = False, blocks: bool = False
) -> spaces.Space[Any]:
    """What learners are shown, with the channels of pictures first."""
    codec = ObservationCodec(spec, masks=masks, channels_first=True, joined=joined, blocks=blocks)
    return codec.space


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
        self.sizes = (*spec.branches, *[self._count] * spec.continuous)
        self.space: spaces.Space[Any] = spaces.MultiDiscrete(list(self.sizes))

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write `actions` [B, branches + C] as the world's actions to `out`, of the same shape.

        Raises ActionError for another shape and for a bin that does not exist; the world itself
        checks the branches.
        """
        del observations
        given = as_batch(actions, out.shape, "actions")
        if not self._columns.size:
            out[:] = given
            return
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

    def masks(self, branches: BoolArray) -> BoolArray:
        """Masks [B, sum of branches + bins]; a bin is never masked."""
        bins = self._count * len(self._columns)
        return np.concatenate([branches, np.ones((len(branches), bins), np.bool_)], axis=1)


def _by_column(values: Float32Array, spec: WorldSpec) -> Float32Array:
    """The bins [C, K] of each continuous column, of `values` [K] between -limit and limit."""
    if not spec.continuous_bounds:
        return np.tile(values, (spec.continuous, 1))
    low, high = (bound.astype(np.float64)[:, None] for bound in spec.action_ranges)
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


def action_codec(
    spec: WorldSpec, kind: ActionKind, aim_bins: Sequence[float] | None
) -> "BinnedActions | FlatChoice | HybridActions":
    """The codec of `kind`; without `aim_bins`, eleven values between the limits of the mouse.

    `bins` is a `MultiDiscrete` of the world's branches and one index into the aim bins, which
    every library can learn, or a `Discrete` where that is one choice. `hybrid` is the world's own
    action: a `Dict` of `branches` (`MultiDiscrete`) and `mouse` (`Box`).
    """
    if kind == "hybrid":
        if aim_bins is not None:
            raise ConfigurationError('aim_bins: action="hybrid" has none; leave them out')
        return HybridActions(spec)
    if kind != "bins":
        raise ConfigurationError(f"action must be bins or hybrid (got {kind!r})")
    binned = BinnedActions(spec, aim_bins)
    return FlatChoice(binned) if len(binned.sizes) == 1 else binned


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
        """Write `actions`, {"branches": [B, branches], "mouse": [B, continuous]}, to `out`.

        Raises ActionError for another shape; the world itself judges the rest.
        """
        rows, width = out.shape
        branches = as_batch(actions[BRANCHES], (rows, self._branches), BRANCHES)
        mouse = as_batch(actions[MOUSE], (rows, width - self._branches), MOUSE)
        out[:, : self._branches] = branches
        # A finite number stays one in single precision; the world itself refuses the others.
        finite = np.where(np.isfinite(mouse), np.clip(mouse, -LARGEST, LARGEST), mouse)
        out[:, self._branches :] = finite


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

    `own` is the environment's own space: a `Box` of numbers, or `Discrete`, `MultiDiscrete` or
    `MultiBinary`; branches and numbers together are as `bins`. `numbers` is the same with whole
    numbers as float32, for learners that keep actions from -1 to 1 in the type of their space.
    `bins` is a `MultiDiscrete` of the world's branches and one index into `aim_bins`; `flat`
    counts all its combinations as one `Discrete`; `hybrid` is a `Box` with the world's own
    columns, in which branches are whole numbers, and an environment's numbers with two bounds go
    from -1 to 1. `target_bins` and `target_hybrid` have a branch
    after the world's that chooses a unit to aim at.
    """
    if kind in ("hybrid", "target_hybrid"):
        hybrid = HybridColumns(spec)
        return hybrid if kind == "hybrid" else TargetCodec(hybrid, spec)
    if kind in ("own", "numbers") and not spec.branches:
        return OwnNumbers(spec, whole=kind == "own")
    binned = BinnedActions(spec, aim_bins)
    if kind == "target_bins":
        return TargetCodec(binned, spec)
    taken = spec.environment_actions
    if kind == "flat" or (kind == "own" and taken is not None and taken.kind == "discrete"):
        return FlatChoice(binned)
    if kind == "own" and taken is not None and taken.kind == "multi_binary":
        binned.space = spaces.MultiBinary(len(spec.branches))
    return binned


class OwnNumbers:
    """An environment's numbers as its own `Box`, where it takes nothing else.

    Without `whole`, whole numbers are float32; the environment is given them rounded.
    """

    def __init__(self, spec: WorldSpec, *, whole: bool = True) -> None:
        self.bins = np.zeros((spec.continuous, 0), np.float32)
        taken, self._spec = spec.environment_actions, spec
        kind: np.dtype[Any] = np.dtype(np.float32)
        shape: tuple[int, ...] = (spec.continuous,)
        ends: Sequence[Any] = spec.action_bounds
        if taken is not None and taken.kind == "box":
            kind, shape, ends = np.dtype(taken.dtype), taken.shape, (taken.low, taken.high)
        farthest = min(FARTHEST, float(np.finfo(kind).max)) if kind.kind == "f" else FARTHEST
        if not (whole or kind.kind == "f"):
            kind = np.dtype(np.float32)
        low, high = (np.array(end, object).clip(-farthest, farthest) for end in ends)
        self.space: spaces.Box[Any] = spaces.Box(
            low.astype(kind).reshape(shape), high.astype(kind).reshape(shape), dtype=kind
        )

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write `actions` [B, *shape] to `out` [B, C]. Raises ActionError for another shape."""
        del observations
        given = as_batch(actions, (len(out), *self.space.shape), "actions")
        out[:] = within_bounds(given.reshape(out.shape), self._spec)

    def masks(self, branches: BoolArray) -> BoolArray:
        """Masks [B, 0]: numbers have no choices to mask."""
        return branches.copy()


def within_bounds(values: npt.NDArray[Any], spec: WorldSpec) -> Float32Array:
    """Numbers [B, C] of an action in single precision; what is at a bound stays there.

    The environment's exact bounds, where it has any, are beyond those of the spec or equal them.
    """
    low, high = spec.action_bounds
    taken = spec.environment_actions
    if (
        values.dtype == np.float32
        and np.count_nonzero((values >= low) & (values <= high)) == values.size
    ):
        return values  # which is faster for a few rows
    exact = (low, high) if taken is None else (np.array(taken.low), np.array(taken.high))
    with np.errstate(over="ignore"):  # the world refuses what becomes infinite
        near = values.astype(np.float32)
    return np.where(values <= exact[0], low, np.where(values >= exact[1], high, near))


class FlatChoice:
    """Every combination of branches and aim bin as one number; the bin counts fastest."""

    def __init__(self, binned: BinnedActions) -> None:
        self._binned, self.bins = binned, binned.bins
        self._sizes = binned.sizes
        self._is_own = len(self._sizes) == 1 and not binned.bins.size
        self.space = spaces.Discrete(int(np.prod(self._sizes)))

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write `actions` [B] to `out` [B, branches + 1]. Raises ActionError beyond the space."""
        del observations
        given = as_batch(actions, out.shape[:1], "actions")
        if self._is_own:
            out[:, 0] = given  # which the world judges
            return
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
    """The world's own action columns in one `Box`: branch indices first, then the numbers.

    An environment's numbers go from -1 to 1 between two bounds, others are as they are.
    """

    def __init__(self, spec: WorldSpec) -> None:
        self.bins = np.zeros((spec.continuous, 0), np.float32)
        self._spec, self._branches = spec, len(spec.branches)
        low, high = spec.action_bounds
        self._shared = np.zeros(spec.continuous, np.bool_)
        if (taken := spec.environment_actions) is not None:
            self._shared = taken.bounded
            exact = np.array([taken.low, taken.high], np.float64)
            self._exact = np.where(self._shared, exact, 0.0)
        ends = (np.where(self._shared, share, one) for share, one in ((-1.0, low), (1.0, high)))
        first, last = (np.clip(one, -FARTHEST, FARTHEST) for one in ends)
        low = np.concatenate([np.zeros(self._branches), first]).astype(np.float32)
        high = np.concatenate([np.array(spec.branches) - 1, last]).astype(np.float32)
        self.space = spaces.Box(low, high)

    def to_world(
        self, actions: Any, out: Float32Array, observations: Float32Array | None = None
    ) -> None:
        """Write `actions` [B, branches + continuous] to `out`; the world itself judges them."""
        del observations
        out[:] = given = as_batch(actions, out.shape, "actions")
        if self._shared.any():
            numbers = given[:, self._branches :]
            share = (np.clip(numbers, -1.0, 1.0).astype(np.float64) + 1.0) / 2.0
            low, high = self._exact
            scaled = np.where(self._shared, low * (1.0 - share) + high * share, numbers)
            out[:, self._branches :] = within_bounds(scaled, self._spec)

    def masks(self, branches: BoolArray) -> BoolArray:
        """Masks [B, sum of branches]: the mouse has no choices to mask."""
        return branches.copy()


class TargetCodec:
    """`plain` with a branch between the world's and the mouse: 0: none, k + 1: the unit in slot k.

    mouse used = clip(bearing of the unit / turn per unit + mouse, within its bounds), where the
    bearing is read from the observation that was acted on. So the mouse is the offset from the
    target. No target, and a slot without a unit, leave the mouse as it is.
    """

    def __init__(self, plain: LearnerCodec, spec: WorldSpec) -> None:
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
        """Add to the mouse of `out` the turn to the units in `slots` [B], -1: no target."""
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
