"""What code that steps an environment of ML-Agents holds: actions, specs, and steps.

Actions of a behavior; what its agents observe and do; and what they observed since the last step:
those that decide next, and those that ended. Named as ML-Agents' `mlagents_envs.base_env`.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, IntFlag
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.world import BoolArray, Float32Array
from aimbot_lab.mlagents.exception import UnityActionException

Int32Array = npt.NDArray[np.int32]


class ActionTuple:
    """Actions of n agents, `continuous` [n, C] float32 and `discrete` [n, branches] int32.

    What is not given has no columns. Arrays of other types are converted.
    """

    def __init__(
        self, continuous: np.ndarray | None = None, discrete: np.ndarray | None = None
    ) -> None:
        self._continuous: Float32Array | None = None
        self._discrete: Int32Array | None = None
        if continuous is not None:
            self.add_continuous(continuous)
        if discrete is not None:
            self.add_discrete(discrete)

    @property
    def continuous(self) -> Float32Array:
        """[n, C] float32; None before anything was added."""
        return cast(Float32Array, self._continuous)

    @property
    def discrete(self) -> Int32Array:
        """[n, branches] int32; None before anything was added."""
        return cast(Int32Array, self._discrete)

    @property
    def discrete_dtype(self) -> type[np.int32]:
        """The type of discrete actions."""
        return np.int32

    def add_continuous(self, continuous: np.ndarray) -> None:
        """Set the continuous actions [n, C]."""
        self._continuous = np.ascontiguousarray(continuous, np.float32)
        if self._discrete is None:
            self._discrete = np.zeros((len(self._continuous), 0), np.int32)

    def add_discrete(self, discrete: np.ndarray) -> None:
        """Set the discrete actions [n, branches]."""
        self._discrete = np.ascontiguousarray(np.asarray(discrete).astype(np.int32, copy=False))
        if self._continuous is None:
            self._continuous = np.zeros((len(self._discrete), 0), np.float32)


class ActionSpec(NamedTuple):
    """How many continuous numbers an action has, and the size of each discrete branch."""

    continuous_size: int
    discrete_branches: tuple[int, ...]

    def __str__(self) -> str:
        return f"Continuous: {self.continuous_size}, Discrete: {self.discrete_branches}"

    @property
    def discrete_size(self) -> int:
        """How many branches there are."""
        return len(self.discrete_branches)

    def is_discrete(self) -> bool:
        """Whether actions have branches only."""
        return self.discrete_size > 0 and self.continuous_size == 0

    def is_continuous(self) -> bool:
        """Whether actions have continuous numbers only."""
        return self.discrete_size == 0 and self.continuous_size > 0

    def empty_action(self, n_agents: int) -> ActionTuple:
        """Zeros [n_agents, ...]."""
        return ActionTuple(
            np.zeros((n_agents, self.continuous_size), np.float32),
            np.zeros((n_agents, self.discrete_size), np.int32),
        )

    def random_action(self, n_agents: int) -> ActionTuple:
        """Actions [n_agents, ...] drawn evenly, continuous ones from -1 to 1.

        From NumPy's global generator, as in ML-Agents: `numpy.random.seed` repeats them.
        """
        continuous = np.random.uniform(-1.0, 1.0, (n_agents, self.continuous_size))
        discrete = np.zeros((n_agents, self.discrete_size), np.int32)
        for branch, size in enumerate(self.discrete_branches):
            discrete[:, branch] = np.random.randint(0, size, n_agents, np.int32)
        return ActionTuple(continuous, discrete)

    @staticmethod
    def create_continuous(continuous_size: int) -> "ActionSpec":
        """Actions of continuous numbers only."""
        return ActionSpec(continuous_size, ())

    @staticmethod
    def create_discrete(discrete_branches: tuple[int, ...]) -> "ActionSpec":
        """Actions of branches of these sizes."""
        return ActionSpec(0, discrete_branches)

    @staticmethod
    def create_hybrid(continuous_size: int, discrete_branches: tuple[int, ...]) -> "ActionSpec":
        """Actions of both."""
        return ActionSpec(continuous_size, discrete_branches)


def checked_action(action: ActionTuple, spec: ActionSpec, *, agents: int, name: str) -> ActionTuple:
    """`action` as it is. Raises UnityActionException unless it fits `agents` agents of `name`."""
    parts = (("continuous", spec.continuous_size), ("discrete", spec.discrete_size))
    for part, size in parts:
        given = getattr(getattr(action, part, None), "shape", None)
        if given != (agents, size):
            raise UnityActionException(
                f"behavior {name}: {part} actions must have the shape {(agents, size)}, "
                f"agents by actions (got {given})"
            )
    return action


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


def is_channels_first(sensor: ObservationSpec) -> bool:
    """Whether a picture's channels come before its height and width."""
    moves = DimensionProperty.TRANSLATIONAL_EQUIVARIANCE
    return sensor.dimension_property == (DimensionProperty.NONE, moves, moves)


class BehaviorSpec(NamedTuple):
    """Observations, in the order of `DecisionSteps.obs`, and actions of a behavior."""

    observation_specs: list[ObservationSpec]
    action_spec: ActionSpec


class DecisionStep(NamedTuple):
    """What one agent that needs an action has observed."""

    obs: list[Float32Array]
    reward: float  # since its last step
    agent_id: int
    action_mask: list[BoolArray] | None  # [choices] of each branch, True where forbidden
    group_id: int
    group_reward: float


class TerminalStep(NamedTuple):
    """What one agent whose episode ended observed last."""

    obs: list[Float32Array]
    reward: float  # since its last step
    interrupted: bool  # cut off, not ended by the rules
    agent_id: int
    group_id: int
    group_reward: float


class _Steps(Mapping[int, Any]):
    """Steps of n agents, by the agents' ids, which they are listed and found by."""

    agent_id: Int32Array  # [n]
    _places: dict[int, int] | None = None

    @cached_property
    def group_id(self) -> Int32Array:
        """[n] Each agent's group; 0: none."""
        return np.zeros(len(self.agent_id), np.int32)

    @cached_property
    def group_reward(self) -> Float32Array:
        """[n] What each agent's group earned."""
        return np.zeros(len(self.agent_id), np.float32)

    @property
    def agent_id_to_index(self) -> dict[int, int]:
        """The place of each agent in the arrays."""
        if self._places is None:
            self._places = {agent: place for place, agent in enumerate(self.agent_id)}
        return self._places

    def _set_groups(self, ids: Int32Array | None, rewards: Float32Array | None) -> None:
        if ids is not None:
            self.group_id = ids
        if rewards is not None:
            self.group_reward = rewards

    def __len__(self) -> int:
        return len(self.agent_id)

    def __iter__(self) -> Iterator[Any]:
        yield from self.agent_id

    def _place(self, agent_id: int) -> int:
        place = self.agent_id_to_index.get(agent_id)
        if place is None:
            raise KeyError(f"agent_id {agent_id} is not present in the {type(self).__name__}")
        return place


class DecisionSteps(_Steps):
    """What n agents that need an action have observed; without groups, none is in one."""

    def __init__(
        self,
        obs: list[Float32Array],
        reward: Float32Array,
        agent_id: Int32Array,
        action_mask: list[BoolArray] | None,
        group_id: Int32Array | None = None,
        group_reward: Float32Array | None = None,
    ) -> None:
        self.obs = obs  # [n, ...] of each sensor
        self.reward = reward  # [n] since each agent's last step
        self.agent_id = agent_id  # [n]
        self.action_mask = action_mask  # [n, choices] of each branch, True where forbidden
        self._set_groups(group_id, group_reward)

    def __getitem__(self, agent_id: int) -> DecisionStep:
        place, masks = self._place(agent_id), self.action_mask
        return DecisionStep(
            obs=[seen[place] for seen in self.obs],
            reward=self.reward[place],
            agent_id=agent_id,
            action_mask=None if masks is None else [mask[place] for mask in masks],
            group_id=self.group_id[place],
            group_reward=self.group_reward[place],
        )

    @staticmethod
    def empty(spec: BehaviorSpec) -> "DecisionSteps":
        """No steps."""
        return DecisionSteps(
            [np.zeros((0, *sensor.shape), np.float32) for sensor in spec.observation_specs],
            np.zeros(0, np.float32),
            np.zeros(0, np.int32),
            None,
        )


class TerminalSteps(_Steps):
    """What n agents whose episodes ended observed last; without groups, none is in one."""

    def __init__(
        self,
        obs: list[Float32Array],
        reward: Float32Array,
        interrupted: BoolArray,
        agent_id: Int32Array,
        group_id: Int32Array | None = None,
        group_reward: Float32Array | None = None,
    ) -> None:
        self.obs = obs  # [n, ...] of each sensor
        self.reward = reward  # [n] since each agent's last step
        self.interrupted = interrupted  # [n] cut off, not ended by the rules
        self.agent_id = agent_id  # [n]
        self._set_groups(group_id, group_reward)

    def __getitem__(self, agent_id: int) -> TerminalStep:
        place = self._place(agent_id)
        return TerminalStep(
            obs=[seen[place] for seen in self.obs],
            reward=self.reward[place],
            interrupted=self.interrupted[place],
            agent_id=agent_id,
            group_id=self.group_id[place],
            group_reward=self.group_reward[place],
        )

    @staticmethod
    def empty(spec: BehaviorSpec) -> "TerminalSteps":
        """No steps."""
        return TerminalSteps(
            [np.zeros((0, *sensor.shape), np.float32) for sensor in spec.observation_specs],
            np.zeros(0, np.float32),
            np.zeros(0, np.bool_),
            np.zeros(0, np.int32),
        )
