"""What a player of ours says of its world beyond what ML-Agents' messages hold, where it is asked.

Names and bounds of observations, targets with their difficulties, parameters, columns of episodes,
as JSON over a side channel of its own. A build of Unity says nothing of the kind.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np

from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world import ObservationBlock, WorldSpec
from aimbot_lab.mlagents.exception import UnitySideChannelException

DESCRIPTION = uuid.UUID("6b6f6f8c-3c5e-4f0f-9a3f-5d1c2a7e9b10")
ASKED = "AIMBOT_LAB_DESCRIBE"
"""The variable in a player's environment by which a trainer of ours asks for it."""
PLAIN = (
    *("observation_names", "targets", "difficulties", "parameters", "action_names"),
    *("decision_seconds", "time_unit", "max_steps", "has_draws", "time_column"),
    *("episode_columns", "result_columns"),
)


def describe(spec: WorldSpec) -> bytes:
    """`spec` as a message over `DESCRIPTION`."""
    told: dict[str, Any] = {name: getattr(spec, name) for name in PLAIN}
    told |= {name: dict(told[name]) for name in ("targets", "difficulties")}
    told["observation_low"] = spec.observation_low.tolist()
    told["observation_high"] = spec.observation_high.tolist()
    told["blocks"] = [[one.name, one.kind, list(one.shape)] for one in spec.blocks]
    turn, (_, high) = spec.turn_per_unit, spec.action_ranges
    told["turn_per_unit"] = None if turn is None else turn * float(high[0])
    return json.dumps(told).encode("utf-8")


def described(message: bytes) -> dict[str, Any]:
    """Fields of a WorldSpec that `message` tells.

    Raises UnitySideChannelException where it is no such description.
    """
    try:
        told: Mapping[str, Any] = json.loads(message)
        fields: dict[str, Any] = {name: told[name] for name in (*PLAIN, "turn_per_unit")}
        for name in ("observation_names", "parameters", "action_names", "episode_columns"):
            fields[name] = tuple(map(str, fields[name]))
        if fields["result_columns"] is not None:
            fields["result_columns"] = tuple(map(str, fields["result_columns"]))
        for name in ("observation_low", "observation_high"):
            fields[name] = np.array(told[name], np.float32)
        fields["blocks"] = tuple(
            ObservationBlock(name, kind, tuple(shape)) for name, kind, shape in told["blocks"]
        )
    except (ValueError, TypeError, KeyError) as error:
        raise UnitySideChannelException(
            f"what a build says of its world can't be read: {shortened(one_line(repr(error)), 80)}"
        ) from error
    return fields
