"""What agents of one behavior have in common: their observations and their actions."""

from enum import Enum, IntFlag
from typing import NamedTuple

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.mlagents.actions import ActionSpec


class DimensionProperty(IntFlag):
    """How a dimension of an observation can be processed."""

    UNSPECIFIED = 0
    NONE = 1
    TRANSLATIONAL_EQUIVARIANCE = 2
    VARIABLE_SIZE = 4


class ObservationType(Enum):
    """What an observation informs about."""

    DEFAULT = 0
    GOAL_SIGNAL = 1


class ObservationSpec(NamedTuple):
    """The shape of an observation of one agent, and what its dimensions are."""

    shape: tuple[int, ...]
    dimension_property: tuple[DimensionProperty, ...]
    observation_type: ObservationType
    name: str  # of the sensor


class BehaviorSpec(NamedTuple):
    """Observations, in the order of `DecisionSteps.obs`, and actions of a behavior."""

    observation_specs: list[ObservationSpec]
    action_spec: ActionSpec


def behavior_spec(spec: WorldSpec) -> BehaviorSpec:
    """The behavior of agents in a world with `spec`: one vector sensor, and its actions.

    The name of the sensor is that which a VectorSensor of Unity has.
    """
    size = len(spec.observation_names)
    sensor = ObservationSpec(
        shape=(size,),
        dimension_property=(DimensionProperty.NONE,),
        observation_type=ObservationType.DEFAULT,
        name=f"VectorSensor_size{size}",
    )
    actions = ActionSpec(spec.continuous, tuple(int(size) for size in spec.branches))
    return BehaviorSpec([sensor], actions)
