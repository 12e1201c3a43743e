"""The moves that kernels are given: checked, since kernels check nothing."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import FLOAT32, action_fault, check_real
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.worlds.gorge.core.state import MOVES
from aimbot_lab.worlds.gorge.core.step import first_bad_action


def checked_actions(actions: Any, *, shape: tuple[int, int]) -> Float32Array:
    """`actions` of `shape` [B, 1] as kernels read them. Raises ActionError for what is no move."""
    usual = type(actions) is np.ndarray and actions.dtype is FLOAT32
    if not usual or actions.shape != shape:
        check_real(actions, shape)
        _check_moves(actions)  # before they lose digits
    found: Float32Array = np.ascontiguousarray(actions, np.float32)
    bad = first_bad_action(found)
    if bad >= 0:
        raise _no_move(found, bad)
    return found


def _check_moves(actions: Any) -> None:
    moves = actions[:, 0]
    wrong = np.flatnonzero(~((moves >= 0) & (moves < MOVES) & (moves == np.floor(moves))))
    if wrong.size:
        raise _no_move(actions, int(wrong[0]))


def _no_move(actions: Any, row: int) -> ActionError:
    return ActionError(action_fault(actions[row], row, names=("move",), branches=(MOVES,)))
