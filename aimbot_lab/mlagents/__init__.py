"""ML-Agents' low-level interface over any world, without Unity and without its packages.

Names, shapes, types and kinds of errors are those of `mlagents_envs` 1.1.0. `environment` is the
way in; `player` plays a world as a build does. Nothing here knows a world by name.
"""

from aimbot_lab.mlagents.actions import ActionSpec, ActionTuple
from aimbot_lab.mlagents.behaviors import (
    BehaviorSpec,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
)
from aimbot_lab.mlagents.environment import LabEnvironment
from aimbot_lab.mlagents.steps import DecisionStep, DecisionSteps, TerminalStep, TerminalSteps

__all__ = [
    "ActionSpec",
    "ActionTuple",
    "BehaviorSpec",
    "DecisionStep",
    "DecisionSteps",
    "DimensionProperty",
    "LabEnvironment",
    "ObservationSpec",
    "ObservationType",
    "TerminalStep",
    "TerminalSteps",
]
