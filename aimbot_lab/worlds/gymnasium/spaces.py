"""Observations and actions of any Gymnasium environment as named columns of numbers."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    ObservationBlock,
    StateTable,
    WorldSpec,
    table_of_one_hot,
)

FARTHEST = np.float32(3.0e38)  # a bound beyond it is none
MAX_COLUMNS = 100_000  # of an observation
OBSERVATION = "obs"  # the name of a whole one
CHANNELS = (1, 3, 4)  # of a picture: grey, colours, and these with a fourth or four pictures


class MisfitError(LabError):
    """What an environment gave does not fit; the words follow `its CALL`."""


class ObservationColumns(NamedTuple):
    """The columns of a flat observation."""

    names: tuple[str, ...]  # [D]
    low: Float32Array  # [D] -inf where there is no bound
    high: Float32Array  # [D]


class ActionColumns(NamedTuple):
    """The columns of an action: branches first, then numbers from -1 to 1."""

    branches: tuple[int, ...]
    names: tuple[str, ...]  # of the branches, then of the numbers
    starts: tuple[int, ...]  # smallest value of each branch
    low: Float32Array  # [C] of the numbers, in the environment's units
    high: Float32Array  # [C]


def observation_columns(space: spaces.Space[Any]) -> ObservationColumns:
    """The columns of `space`, flattened as `gymnasium.spaces.flatten` does.

    Raises ConfigurationError for a space whose elements have no fixed number of columns, and for
    one of too many.
    """
    names = tuple(islice(_names(space, OBSERVATION), MAX_COLUMNS + 1))
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


def flat_masks(given: Any, spec: WorldSpec) -> BoolArray:
    """The masks of each branch, or of a single one that comes without a list, as [choices].

    Raises MisfitError where they do not fit.
    """
    try:
        parts = [np.ravel(part) for part in (given if isinstance(given, list | tuple) else [given])]
        masks = np.concatenate(parts).astype(np.bool_)
    except (TypeError, ValueError) as error:
        raise MisfitError(f"gave what is no mask of its choices: {first_line(error)}") from error
    if len(masks) != sum(spec.branches):
        raise MisfitError(f"gave {len(masks)} masks; its actions have {sum(spec.branches)} choices")
    ends = np.cumsum(spec.branches)[:-1]
    for name, part in zip(spec.action_names, np.split(masks, ends), strict=False):
        if not part.any():
            raise MisfitError(f"gave no choice for {name}")
    return masks


def reward_of(given: Any) -> float:
    """The number that a step gave as its reward. Raises MisfitError where it is none."""
    try:
        return float(given)
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
    if isinstance(space, spaces.Box) and len(space.shape) == 3 and space.dtype == np.uint8:
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

    Raises ConfigurationError for a space other than Discrete, MultiDiscrete, MultiBinary and a
    bounded Box.
    """
    none = np.zeros(0, np.float32)
    if isinstance(space, spaces.Discrete):
        return ActionColumns((int(space.n),), ("action",), (int(space.start),), none, none)
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        sizes = _sizes(space)
        starts = space.start.ravel().tolist() if isinstance(space, spaces.MultiDiscrete) else []
        names = tuple(f"action_{index}" for index in range(len(sizes)))
        return ActionColumns(sizes, names, tuple(starts) or (0,) * len(sizes), none, none)
    if isinstance(space, spaces.Box) and space.is_bounded():
        low, high = space.low.astype(np.float32).ravel(), space.high.astype(np.float32).ravel()
        names = tuple(f"action_{index}" for index in range(len(low)))
        return ActionColumns((), names, (), low, high)
    raise ConfigurationError(
        f"env.id: actions of {type(space).__name__} can't be used; allowed are Discrete, "
        "MultiDiscrete, MultiBinary and a Box with bounds"
    )


def _sizes(space: spaces.MultiDiscrete | spaces.MultiBinary) -> tuple[int, ...]:
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(space.nvec.ravel().tolist())
    return (2,) * int(np.prod(space.shape))


def environment_action(
    space: spaces.Space[Any], columns: ActionColumns, action: Float32Array
) -> Any:
    """The action [branches + C] of a world as the environment takes it."""
    if isinstance(space, spaces.Discrete):
        return int(action[0]) + columns.starts[0]
    if isinstance(space, spaces.Box):
        share = (np.clip(action, -1.0, 1.0) + 1.0) / 2.0
        values = columns.low + share * (columns.high - columns.low)
        return values.reshape(space.shape).astype(space.dtype)
    assert space.shape is not None
    whole = action.astype(np.int64) + np.array(columns.starts, np.int64)
    return whole.reshape(space.shape).astype(space.dtype)
