"""What a world says to a call that it cannot carry out, and how it checks one."""

import operator
from contextlib import suppress
from typing import Any

import numpy as np

from aimbot_lab.foundation.errors import LabError

FLOAT32 = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)


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
