"""ML-Agents' low-level interface over any world, without Unity and without its packages.

Names, shapes, types and kinds of errors are those of `mlagents_envs` 1.1.0. `environment` is the
way in; `player` plays a world as a build does. Nothing here knows a world by name.
"""

from aimbot_lab.mlagents.base_env import (
    ActionSpec,
    ActionTuple,
    BehaviorSpec,
    DecisionStep,
    DecisionSteps,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
    TerminalStep,
    TerminalSteps,
)
from aimbot_lab.mlagents.environment import LabEnvironment

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
