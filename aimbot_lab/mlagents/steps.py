"""What agents observed since the last step: those that decide next, and those that ended."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Float32Array
from aimbot_lab.mlagents.actions import Int32Array
from aimbot_lab.mlagents.behaviors import BehaviorSpec


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
        """Steps of nobody."""
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
        """Steps of nobody."""
        return TerminalSteps(
            [np.zeros((0, *sensor.shape), np.float32) for sensor in spec.observation_specs],
            np.zeros(0, np.float32),
            np.zeros(0, np.bool_),
            np.zeros(0, np.int32),
        )
