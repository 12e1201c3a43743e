"""Observations and actions of any Gymnasium environment as named columns of numbers."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.world import (
    BoolArray,
    EnvironmentActions,
    Float32Array,
    ObservationBlock,
    StateTable,
    WorldSpec,
    table_of_one_hot,
)

FARTHEST = np.float32(3.0e38)  # a bound beyond it is none
MAX_COLUMNS = 100_000  # of an observation
OBSERVATION = "obs"  # the name of a whole one
ACTION = "action"  # the same
MAX_CHOICES = 2**16  # of an action
ROUNDING = 1e-5  # share of a bound by which a number may lie beyond it without a word
CHANNELS = (1, 3, 4)  # of a picture: grey, colours, and these with a fourth or four pictures


class MisfitError(LabError):
    """What an environment gave does not fit; the words follow `its CALL`."""


class ObservationColumns(NamedTuple):
    """The columns of a flat observation."""

    names: tuple[str, ...]  # [D]
    low: Float32Array  # [D] -inf where there is no bound
    high: Float32Array  # [D]


class ActionColumns(NamedTuple):
    """The columns of an action: branches first, then numbers."""

    branches: tuple[int, ...]  # choices of each
    names: tuple[str, ...]  # of the branches, then of the numbers
    taken: EnvironmentActions  # how the environment takes them


def observation_columns(space: spaces.Space[Any]) -> ObservationColumns:
    """The columns of `space`, flattened as `gymnasium.spaces.flatten` does.

    Raises ConfigurationError for a space whose elements have no fixed number of columns, and for
    one of too many.
    """
    names = tuple(islice(_names(space, OBSERVATION), MAX_COLUMNS + 1))
    if not names:
        raise ConfigurationError("env.id: an observation holds no number, so none could be learned")
    if len(names) > MAX_COLUMNS:
        raise ConfigurationError(
            f"env.id: an observation of {int(spaces.flatdim(space)):,} numbers is too large (at "
            f"most {MAX_COLUMNS:,}): make it smaller by a wrapper, pictures for example by "
            "gymnasium.wrappers.ResizeObservation or AtariPreprocessing"
        )
    flat = spaces.flatten_space(space)
    assert isinstance(flat, spaces.Box)
    low, high = flat.low.astype(np.float32).ravel(), flat.high.astype(np.float32).ravel()
    low = np.where(low < -FARTHEST, np.float32(-np.inf), low)
    high = np.where(high > FARTHEST, np.float32(np.inf), high)
    return ObservationColumns(names, low, high)


def flat_observation(space: spaces.Space[Any], observation: Any, *, size: int) -> Float32Array:
    """`observation` of `space` as its columns [D], `size` of them.

    Raises MisfitError where it does not fit.
    """
    try:
        flat = np.asarray(spaces.flatten(space, observation), np.float32)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
    else:
        if flat.shape == (size,):
            return flat
        reason = f"{flat.size} numbers instead of {size}"
    raise MisfitError(f"gave an observation that does not fit its observation_space: {reason}")


def shape_fault(space: spaces.Space[Any], observation: Any, name: str = OBSERVATION) -> str | None:
    """What shape an entry of `observation` has in the place of its Box's; None: all have theirs."""
    if isinstance(space, spaces.Dict):
        each = ((one, observation[key], str(key)) for key, one in space.spaces.items())
        return next((fault for one in each if (fault := shape_fault(*one))), None)
    if not isinstance(space, spaces.Box) or np.shape(observation) == space.shape:
        return None
    return f"gave {name} with the shape {np.shape(observation)}; its space says {space.shape}"


class Bounded(NamedTuple):
    """Neighbouring columns of observations that have bounds."""

    columns: slice
    low: Float32Array  # [their number], a little below, so that rounding does not count
    high: Float32Array


def bounded_columns(spec: WorldSpec) -> tuple[Bounded, ...]:
    """The parts of observations that may lie beyond bounds; pixels can't."""
    found, first = [], 0
    for block in spec.observation_blocks:
        columns = slice(first, first := first + block.columns)
        low, high = spec.observation_low[columns], spec.observation_high[columns]
        if block.kind != "image" and (np.isfinite(low) | np.isfinite(high)).any():
            below, above = (np.float32(ROUNDING) * (1 + np.abs(bound)) for bound in (low, high))
            found.append(Bounded(columns, low - below, high + above))
    return tuple(found)


def outside(spec: WorldSpec, parts: Iterable[Bounded], observations: Float32Array) -> str | None:
    """The first of `observations` [B, D] that lies beyond its bounds; None: all lie within."""
    for columns, low, high in parts:
        given = observations[:, columns]
        if (given < low).any() or (given > high).any():
            row, place = np.argwhere((given < low) | (given > high))[0]
            column = columns.start + place
            ends = f"{spec.observation_low[column]:g} to {spec.observation_high[column]:g}"
            name = spec.observation_names[column]
            return f"gave {name} as {given[row, place]:g}; its space says {ends}"
    return None


def flat_masks(given: Any, spec: WorldSpec) -> BoolArray:
    """The masks of each branch, or of a single one that comes without a list, as [choices].

    Raises MisfitError where they do not fit.
    """
    try:
        parts = [np.ravel(part) for part in (given if isinstance(given, list | tuple) else [given])]
        values = np.concatenate(parts)
        masks = values.astype(np.bool_)
    except (TypeError, ValueError) as error:
        raise MisfitError(f"gave what is no mask of its choices: {first_line(error)}") from error
    if len(masks) != sum(spec.branches):
        raise MisfitError(f"gave {len(masks)} masks; its actions have {sum(spec.branches)} choices")
    if not (masks == values).all():
        shown = values[np.flatnonzero(masks != values)[0]]
        raise MisfitError(f"gave {shown} in a mask, which must be true or false, 1 or 0")
    ends = np.cumsum(spec.branches)[:-1]
    for name, part in zip(spec.action_names, np.split(masks, ends), strict=False):
        if not part.any():
            raise MisfitError(f"gave no choice for {name}")
    return masks


def reward_of(given: Any) -> float:
    """The number that a step gave as its reward. Raises MisfitError where it is none."""
    try:
        return float(given.item() if isinstance(given, np.ndarray) else given)
    except (TypeError, ValueError):
        shown = one_line(str(given))[:80]
        raise MisfitError(f"gave a reward that is not a number: {shown}") from None


def first_line(error: Exception) -> str:
    """What `error` says, in a line."""
    return str(error).splitlines()[0] if str(error) else "no reason given"


def _refused(space: spaces.Space[Any], name: str) -> ConfigurationError:
    entry = f"; leave out the entry {name} by gymnasium.wrappers.FilterObservation"
    return ConfigurationError(
        f"env.id: observations of {type(space).__name__} can't be used; allowed are Box, Discrete, "
        "MultiDiscrete, MultiBinary, and Dict and Tuple of these"
        f"{'' if name == OBSERVATION else entry}"
    )


def observation_blocks(space: spaces.Space[Any]) -> tuple[ObservationBlock, ...]:
    """A block for each entry of a Dict or Tuple, one for any other space; pictures as images.

    Raises ConfigurationError for a picture whose layout is not plainly [H, W, C].
    """
    match space:
        case spaces.Dict():
            return tuple(_block(inner, str(key)) for key, inner in space.spaces.items())
        case spaces.Tuple():
            return tuple(
                _block(inner, f"{OBSERVATION}_{index}") for index, inner in enumerate(space.spaces)
            )
    return (_block(space, OBSERVATION),)


def numbered_states(space: spaces.Space[Any]) -> StateTable | None:
    """A state for each observation, where there is a number of these; else None."""
    return table_of_one_hot(0, int(space.n)) if isinstance(space, spaces.Discrete) else None


def _block(space: spaces.Space[Any], name: str) -> ObservationBlock:
    for inner in _boxes(space):
        if _is_picture(inner) and (inner is not space or len(inner.shape) != 3):
            raise ConfigurationError(
                f"env.id: {name} holds pictures of shape {inner.shape}; a picture must be the "
                "observation, or an entry of a Dict, of height, width and 1, 3 or 4 channels: move "
                "it there by gymnasium.wrappers.TransformObservation, or make it a vector by "
                "FlattenObservation"
            )
    if isinstance(space, spaces.Box) and _is_picture(space):
        height, width, channels = space.shape
        # One of [4, 84, 3] pixels is as likely one of [84, 3] that has its four channels first.
        first = height in CHANNELS and (height != width or height == channels)
        if channels not in CHANNELS or first:
            raise ConfigurationError(
                f"env.id: {name} is a picture of shape {space.shape}, which is not plainly height, "
                "width and 1, 3 or 4 channels: move its channels to the end by "
                "gymnasium.wrappers.TransformObservation, or make it a vector by FlattenObservation"
            )
        return ObservationBlock(name, "image", space.shape)
    return ObservationBlock(name, "vector", (int(spaces.flatdim(space)),))


def _is_picture(space: spaces.Box) -> bool:
    return len(space.shape) >= 3 and space.dtype == np.uint8


def _boxes(space: spaces.Space[Any]) -> Iterator[spaces.Box]:
    """All Boxes in `space`, itself included."""
    match space:
        case spaces.Box():
            yield space
        case spaces.Dict():
            for inner in space.spaces.values():
                yield from _boxes(inner)
        case spaces.Tuple():
            for inner in space.spaces:
                yield from _boxes(inner)


def _names(space: spaces.Space[Any], name: str) -> Iterator[str]:
    match space:
        case spaces.Dict():
            for key, inner in space.spaces.items():
                yield from _names(inner, str(key) if name == OBSERVATION else f"{name}_{key}")
        case spaces.Tuple():
            for index, inner in enumerate(space.spaces):
                yield from _names(inner, f"{name}_{index}")
        case spaces.Discrete():
            yield from (f"{name}_is_{space.start + value}" for value in range(int(space.n)))
        case spaces.MultiDiscrete():
            for place, count in enumerate(space.nvec.ravel().tolist()):
                yield from (f"{name}_{place}_is_{value}" for value in range(count))
        case spaces.Box() | spaces.MultiBinary():
            yield from (f"{name}_{index}" for index in range(int(spaces.flatdim(space))))
        case _:
            raise _refused(space, name)


def action_columns(space: spaces.Space[Any]) -> ActionColumns:
    """The columns of actions of `space`.

    Raises ConfigurationError for a space that can't be columns, and for one of none or too many.
    """
    columns = _action_columns(space, ACTION)
    count = sum(columns.branches) + len(columns.taken.low)
    if not 0 < count <= MAX_CHOICES:
        raise ConfigurationError(
            f"env.id: an action of {count:,} choices and numbers can't be used; it must have 1 to "
            f"{MAX_CHOICES:,}"
        )
    return columns


def _action_columns(space: spaces.Space[Any], name: str) -> ActionColumns:
    match space:
        case spaces.Dict():
            keys = tuple(space.spaces)
            if all(isinstance(key, str | int) for key in keys):
                entry = "" if name == ACTION else f"{name}_"
                parts = [_action_columns(one, f"{entry}{key}") for key, one in space.items()]
                return _joined(parts, keys)
        case spaces.Tuple():
            parts = [_action_columns(one, f"{name}_{k}") for k, one in enumerate(space.spaces)]
            return _joined(parts, None)
        case spaces.Discrete():
            taken = EnvironmentActions("discrete", (), str(space.dtype), (int(space.start),))
            return ActionColumns((int(space.n),), (name,), taken)
        case spaces.MultiDiscrete():
            sizes, starts = tuple(space.nvec.ravel().tolist()), tuple(space.start.ravel().tolist())
            taken = EnvironmentActions("multi_discrete", space.shape, str(space.dtype), starts)
            return ActionColumns(sizes, _numbered(name, len(sizes)), taken)
        case spaces.MultiBinary():
            count = int(np.prod(space.shape))
            taken = EnvironmentActions("multi_binary", space.shape, str(space.dtype), (0,) * count)
            return ActionColumns((2,) * count, _numbered(name, count), taken)
        case spaces.Box():
            low, high = (end.ravel().tolist() for end in (space.low, space.high))
            farthest = float(FARTHEST)
            taken = EnvironmentActions(
                "box",
                space.shape,
                str(space.dtype),
                low=tuple(-np.inf if bound < -farthest else bound for bound in low),
                high=tuple(np.inf if bound > farthest else bound for bound in high),
            )
            return ActionColumns((), _numbered(name, len(low)), taken)
    entry = "" if name == ACTION else f" in the entry {name}"
    raise ConfigurationError(
        f"env.id: actions of {type(space).__name__}{entry} can't be used; allowed are Discrete, "
        "MultiDiscrete, MultiBinary, Box, and Dict and Tuple of these: change them by "
        "gymnasium.wrappers.TransformAction"
    )


def _joined(parts: Sequence[ActionColumns], keys: Sequence[str | int] | None) -> ActionColumns:
    """The columns of an action of `parts`: the choices of all, then the numbers of all."""
    counts = [len(part.branches) for part in parts]
    choices = [part.names[:count] for part, count in zip(parts, counts, strict=True)]
    numbers = [part.names[count:] for part, count in zip(parts, counts, strict=True)]
    taken = EnvironmentActions.joined([part.taken for part in parts], keys)
    sizes = tuple(chain.from_iterable(part.branches for part in parts))
    return ActionColumns(sizes, tuple(chain.from_iterable(choices + numbers)), taken)


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}_{index}" for index in range(count))
