"""What the duel accepts as actions."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import FLOAT32
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.step_checks import action_fault, check_real
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.worlds.arena.core.step import first_bad_action
from aimbot_lab.worlds.duel.core.state import ACTION_COLUMNS, AGENTS, BRANCHES

NAMES = ("vertical move", "horizontal move", "attack", "mouse")
AGENT_NAMES = ("home", "away")
LARGEST = float(np.finfo(np.float32).max)


def checked_actions(actions: Any, matches: int, *, seats: int | None = None) -> Float32Array:
    """`actions` [seats, 4] as kernels read them; all seats of the matches, or the first `seats`.

    Raises ActionError, naming match and agent, for what no player could do.
    """
    shape = AGENTS * matches if seats is None else seats, ACTION_COLUMNS
    usual = type(actions) is np.ndarray and actions.dtype is FLOAT32
    if not usual or actions.shape != shape:
        check_real(actions, shape)
        if actions.dtype == np.float64:
            # Any finite mouse is a mouse, also one that single precision would make infinite.
            clipped = np.clip(actions, -LARGEST, LARGEST)
            actions = np.where(np.isfinite(actions), clipped, actions)
    found = np.ascontiguousarray(actions, np.float32)
    bad = first_bad_action(found)
    if bad >= 0:
        match, agent = bad % matches, AGENT_NAMES[bad // matches]
        fault = action_fault(found[bad], match, names=NAMES, branches=BRANCHES)
        raise ActionError(f"{fault} (agent {agent})")
    return found
