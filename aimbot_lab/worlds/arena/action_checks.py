"""What the arena accepts as actions; the duel, whose agents act alike, reads them likewise."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import FLOAT32, action_fault, check_real
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.worlds.arena.core.state import BRANCHES
from aimbot_lab.worlds.arena.core.step import first_bad_action

ACTION_NAMES = ("vertical move", "horizontal move", "attack", "mouse")
LARGEST = float(np.finfo(np.float32).max)


def checked_actions(actions: Any, shape: tuple[int, int]) -> Float32Array:
    """`actions` of `shape` [B, 4] as kernels read them.

    Raises ActionError, naming the row, for what no player could do.
    """
    found = in_single_precision(actions, shape)
    bad = first_bad_action(found)
    if bad >= 0:
        raise ActionError(action_fault(found[bad], bad, names=ACTION_NAMES, branches=BRANCHES))
    return found


def in_single_precision(actions: Any, shape: tuple[int, int]) -> Float32Array:
    """`actions` as float32, contiguous. Raises ActionError for another shape or no real numbers."""
    usual = type(actions) is np.ndarray and actions.dtype is FLOAT32
    if not usual or actions.shape != shape:
        check_real(actions, shape)
        if actions.dtype == np.float64:
            # Any finite mouse is a mouse, also one that single precision would make infinite.
            clipped = np.clip(actions, -LARGEST, LARGEST)
            actions = np.where(np.isfinite(actions), clipped, actions)
    return np.ascontiguousarray(actions, np.float32)
