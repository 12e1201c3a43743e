"""What the duel accepts as actions."""

from typing import Any

from aimbot_lab.foundation.argument_checks import action_fault
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.worlds.arena.action_checks import ACTION_NAMES, in_single_precision
from aimbot_lab.worlds.arena.core.step import first_bad_action
from aimbot_lab.worlds.duel.core.state import ACTION_COLUMNS, AGENTS, BRANCHES

AGENT_NAMES = ("home", "away")


def checked_actions(actions: Any, matches: int, *, seats: int | None = None) -> Float32Array:
    """`actions` [seats, 4] as kernels read them; all seats of the matches, or the first `seats`.

    Raises ActionError, naming match and agent, for what no player could do.
    """
    shape = AGENTS * matches if seats is None else seats, ACTION_COLUMNS
    found = in_single_precision(actions, shape)
    bad = first_bad_action(found)
    if bad >= 0:
        match, agent = bad % matches, AGENT_NAMES[bad // matches]
        fault = action_fault(found[bad], match, names=ACTION_NAMES, branches=BRANCHES)
        raise ActionError(f"{fault} (agent {agent})")
    return found
