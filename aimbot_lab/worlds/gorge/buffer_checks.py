"""What kernels are given by callers: checked, since kernels check no bounds."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import BOOL, FLOAT32, MisuseError, check_writable
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import Float32Array, StepBuffers
from aimbot_lab.worlds.gorge.core.state import MOVES
from aimbot_lab.worlds.gorge.core.step import first_bad_action


def check_buffers(buffers: Any, *, shape: tuple[int, int]) -> None:
    """Raise MisuseError unless kernels can fill `buffers` of observations of that shape."""
    if not isinstance(buffers, StepBuffers):
        raise MisuseError(f"buffers: must be StepBuffers (got {type(buffers).__name__})")
    for name, array in zip(StepBuffers._fields, buffers, strict=True):
        wide = name in ("observations", "final_observations")
        kind = BOOL if name in ("finished", "truncated") else FLOAT32
        check_writable(array, name, shape=shape if wide else shape[:1], dtype=kind)


def checked_actions(actions: Any, *, rows: int) -> Float32Array:
    """`actions` [rows, 1] as kernels read them. Raises ActionError for what is no move."""
    if not isinstance(actions, np.ndarray) or actions.dtype.kind not in "biuf":
        kind = getattr(actions, "dtype", type(actions).__name__)
        raise ActionError(f"actions: must be an array of real numbers (got {kind})")
    if actions.shape != (rows, 1):
        raise ActionError(f"actions: the shape is {actions.shape}; it must be {(rows, 1)}")
    if actions.dtype != np.float32:
        _check_moves(actions)  # before they lose digits
    found: Float32Array = np.ascontiguousarray(actions, np.float32)
    bad = first_bad_action(found)
    if bad >= 0:
        raise _no_move(found[bad, 0], bad)
    return found


def _check_moves(actions: Any) -> None:
    moves = actions[:, 0]
    wrong = np.flatnonzero(~((moves >= 0) & (moves < MOVES) & (moves == np.floor(moves))))
    if wrong.size:
        raise _no_move(moves[wrong[0]], int(wrong[0]))


def _no_move(value: Any, row: int) -> ActionError:
    allowed = ", ".join(map(str, range(MOVES)))
    return ActionError(f"environment {row}: move is {value:g}; allowed is one of {allowed}")
