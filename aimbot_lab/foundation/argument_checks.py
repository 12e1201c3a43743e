"""How worlds check calls: seeds, rows, arrays to fill, and the actions of players."""

import operator
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from aimbot_lab.foundation.errors import ActionError, LabError
from aimbot_lab.foundation.world import Float32Array, StepBuffers, WorldSpec

FLOAT32 = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)
LISTED = 5  # choices that a message names one by one


class MisuseError(LabError, ValueError):
    """A call that the world cannot carry out; the world is as it was."""


def whole_seed(seed: Any) -> int:
    """`seed` as a whole number of Python. Raises MisuseError for floats, bools and the like."""
    try:
        return _whole(seed)
    except TypeError:
        raise MisuseError(f"seed: must be a whole number (got {seed!r})") from None


def _whole(number: Any) -> int:
    if isinstance(number, bool | np.bool_):
        raise TypeError
    return operator.index(number)


def checked_row(row: Any, rows: int) -> int:
    """`row` as a whole number of Python. Raises MisuseError unless it is one of `rows` rows."""
    with suppress(TypeError):
        found = _whole(row)
        if 0 <= found < rows:
            return found
    raise MisuseError(f"row: must be a whole number from 0 to {rows - 1} (got {row!r})")


def check_writable(
    array: np.ndarray, name: str, *, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    """Raise MisuseError unless a kernel can fill `array` [shape] of type `dtype`.

    Kernels do not check bounds: another shape would be written past its end.
    """
    if (
        type(array) is not np.ndarray
        or array.shape != shape
        or array.dtype != dtype
        or not array.flags.carray
    ):
        wanted = f"must be a writable C-contiguous array of shape {shape} and type {dtype}"
        raise MisuseError(f"{name}: {wanted} (got {_shown(array)})")


def _shown(array: Any) -> str:
    if type(array) is not np.ndarray:
        return f"{type(array).__name__}"
    marks = "" if array.flags.writeable else ", read-only"
    marks += "" if array.flags.c_contiguous else ", not contiguous"
    # Another byte order shows in the form with a sign, as in >f4.
    kind = array.dtype if array.dtype.isnative else array.dtype.str
    return f"shape {array.shape}, type {kind}{marks}"


def check_buffers(
    buffers: StepBuffers, shape: tuple[int, ...], dtype: np.dtype[Any] = FLOAT32
) -> None:
    """Raise MisuseError unless a world can fill `buffers`.

    Observations must be of `shape` [N, D], or records [N] of `dtype`.
    """
    if _surely_fit(buffers, shape, dtype):
        return
    if not isinstance(buffers, StepBuffers):
        raise MisuseError(f"buffers: must be StepBuffers (got {type(buffers).__name__})")
    for name, array in buffers._asdict().items():
        if name in ("observations", "final_observations"):
            check_writable(array, name, shape=shape, dtype=dtype)
        else:
            kind = BOOL if name in ("finished", "truncated") else FLOAT32
            check_writable(array, name, shape=shape[:1], dtype=kind)


def _surely_fit(buffers: StepBuffers, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether all is right at one glance; what is not sure is checked array by array."""
    if type(buffers) is not StepBuffers:
        return False
    seen, rewards, finished, truncated, last = buffers
    return (
        type(seen) is np.ndarray
        and type(rewards) is np.ndarray
        and type(finished) is np.ndarray
        and type(truncated) is np.ndarray
        and type(last) is np.ndarray
        and seen.shape == last.shape == shape
        and rewards.shape == finished.shape == truncated.shape == shape[:1]
        and seen.dtype is last.dtype is dtype
        and rewards.dtype is FLOAT32
        and finished.dtype is truncated.dtype is BOOL
        and seen.flags.carray
        and rewards.flags.carray
        and finished.flags.carray
        and truncated.flags.carray
        and last.flags.carray
    )


def check_real(actions: Any, shape: tuple[int, int]) -> None:
    """Raise ActionError unless `actions` is an array of real numbers of `shape` [N, A]."""
    if not isinstance(actions, np.ndarray) or actions.dtype.kind not in "biuf":
        kind = getattr(actions, "dtype", type(actions).__name__)
        raise ActionError(f"actions: must be an array of real numbers (got {kind})")
    if actions.shape != shape:
        raise ActionError(f"actions: the shape is {actions.shape}; it must be {shape}")


def checked_actions(actions: Any, rows: int, *, spec: WorldSpec) -> Float32Array:
    """`actions` [rows, branches + continuous] in single precision, clipped to the spec's bounds.

    Raises ActionError for one that does not exist: a branch index that there is not, NaN, infinity.
    """
    count = len(spec.branches)
    check_real(actions, (rows, count + spec.continuous))
    given: Float32Array = actions.copy() if actions.dtype is FLOAT32 else _in_single(actions)
    # At a glance, which is faster for a few rows: one choice, or numbers within their bounds.
    if count == 1 and not spec.continuous:
        if _numbers(spec.branches[0]).issuperset(given[:, 0].tolist()):
            return given
    elif not count:
        low, high = spec.action_bounds
        within = np.isfinite(given) & (given >= low) & (given <= high)
        if np.count_nonzero(within) == given.size:
            return given
    choices = given[:, :count]
    wrong = ~np.isfinite(given)
    wrong[:, :count] |= (choices < 0) | (choices >= np.array(spec.branches)) | (choices % 1 != 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong.any(axis=1))[0])
        raise ActionError(
            action_fault(given[row], row, names=spec.action_names, branches=spec.branches)
        )
    if spec.continuous:
        np.clip(given[:, count:], *spec.action_bounds, out=given[:, count:])
    return given


def _in_single(actions: np.ndarray) -> Float32Array:
    with np.errstate(over="ignore"):  # what single precision makes infinite is refused as such
        return actions.astype(np.float32)


@lru_cache(maxsize=64)
def _numbers(count: int) -> frozenset[int]:
    """The whole numbers below `count`, which floats of the same value equal."""
    return frozenset(range(count))


def action_fault(
    action: Float32Array, row: int, *, names: Sequence[str], branches: Sequence[int]
) -> str:
    """The first fault of `action` [A], that of environment `row`, which has one."""
    for value, name, size in zip(action.tolist(), names, branches, strict=False):
        if value not in range(size):
            listed = ", ".join(map(str, range(size)))
            allowed = f"one of {listed if size <= LISTED else f'0 to {size - 1}'}"
            return f"environment {row}: {name} is {value:g}; allowed is {allowed}"
    column = len(branches) + int(np.argmin(np.isfinite(action[len(branches) :])))
    value, name = float(action[column]), names[column]
    return f"environment {row}: {name} is {value:g}; allowed is any finite number"
