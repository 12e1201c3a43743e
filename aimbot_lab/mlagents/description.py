"""What a player of ours says of its world beyond what ML-Agents' messages hold, where it is asked.

Names and bounds of observations, targets with their difficulties, parameters, columns of episodes,
as JSON over a side channel of its own. A build of Unity says nothing of the kind.
"""

import json
import uuid
from typing import Any

from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.spec_document import spec_document, spec_from
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.mlagents.exception import UnitySideChannelException

DESCRIPTION = uuid.UUID("6b6f6f8c-3c5e-4f0f-9a3f-5d1c2a7e9b10")
ASKED = "AIMBOT_LAB_DESCRIBE"
"""The variable in a player's environment by which a trainer of ours asks for it."""
TOLD = (
    *("observation_names", "observation_low", "observation_high", "blocks", "targets"),
    *("difficulties", "parameters", "action_names", "decision_seconds", "time_unit", "max_steps"),
    *("has_draws", "time_column", "episode_columns", "result_columns", "turn_per_unit"),
)


def describe(spec: WorldSpec) -> bytes:
    """`spec` as a message over `DESCRIPTION`."""
    document = spec_document(spec)
    turn, (_, high) = spec.turn_per_unit, spec.action_ranges
    document["turn_per_unit"] = None if turn is None else turn * float(high[0])
    return json.dumps(document).encode("utf-8")


def described(message: bytes) -> dict[str, Any]:
    """Fields of a WorldSpec that `message` tells.

    Raises UnitySideChannelException where it is no such description.
    """
    try:
        spec = spec_from(json.loads(message))
    except ValueError as error:
        raise UnitySideChannelException(
            f"what a build says of its world can't be read: {shortened(one_line(repr(error)), 80)}"
        ) from error
    return {name: getattr(spec, name) for name in TOLD}
