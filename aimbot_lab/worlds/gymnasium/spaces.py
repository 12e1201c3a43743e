"""Actions of any Gymnasium environment as named columns, and what else it gives beside them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from aimbot_lab.foundation.errors import ConfigurationError, LabError, reason
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.world import BoolArray, EnvironmentActions, WorldSpec

FARTHEST = np.float32(3.0e38)  # a bound beyond it is none
ACTION = "action"  # the name of a whole one
MAX_CHOICES = 2**16  # of an action


class MisfitError(LabError):
    """What an environment gave does not fit; the words follow `its CALL`."""


class ActionColumns(NamedTuple):
    """The columns of an action: branches first, then numbers."""

    branches: tuple[int, ...]  # choices of each
    names: tuple[str, ...]  # of the branches, then of the numbers
    taken: EnvironmentActions  # how the environment takes them


def flat_masks(given: Any, spec: WorldSpec) -> BoolArray:
    """The masks of each branch, or of a single one that comes without a list, as [choices].

    Those of a Dict of actions may be a Dict, too, with None for numbers. Raises MisfitError where
    they do not fit.
    """
    try:
        values = np.concatenate(list(_mask_parts(given, spec.environment_actions)))
        masks = values.astype(np.bool_)
    except (TypeError, ValueError) as error:
        raise MisfitError(f"gave an invalid mask of its choices: {reason(error)}") from error
    if len(masks) != sum(spec.branches):
        raise MisfitError(f"gave {len(masks)} masks; its actions have {sum(spec.branches)} choices")
    if not (masks == values).all():
        shown = one_line(str(values[np.flatnonzero(masks != values)[0]]))[:80]
        raise MisfitError(f"gave {shown} in a mask, which must be true or false, 1 or 0")
    ends = np.cumsum(spec.branches)[:-1]
    for name, part in zip(spec.action_names, np.split(masks, ends), strict=False):
        if not part.any():
            raise MisfitError(f"gave no choice for {name}")
    return masks


def _mask_parts(given: Any, taken: EnvironmentActions | None) -> Iterator[npt.NDArray[Any]]:
    if isinstance(given, Mapping) and taken is not None:
        for key, part in zip(taken.keys, taken.parts, strict=True):
            if part.starts:
                yield from _mask_parts(given.get(key), part)
    else:
        yield from map(np.ravel, given if isinstance(given, list | tuple) else [given])


def reward_of(given: Any) -> float:
    """The number that a step gave as its reward. Raises MisfitError where it is none."""
    try:
        return float(given.item() if isinstance(given, np.ndarray) else given)
    except (TypeError, ValueError):
        shown = one_line(str(given))[:80]
        raise MisfitError(f"gave a reward that is not a number: {shown}") from None


def check_end(name: str, given: Any) -> None:
    """Raise MisfitError for what is true to Python and no truth value, such as [False]."""
    is_nan = isinstance(given, float | np.floating) and np.isnan(given)
    if is_nan or isinstance(given, Sequence | Mapping):
        shown = one_line(str(given))[:80]
        raise MisfitError(f"gave {name} as {shown}, which must be true or false")


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
