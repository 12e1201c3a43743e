"""Environments that are learned from in a few hundred steps: numbers, masks, pictures, goals."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Reach(gymnasium.Env[Any, Any]):
    """A reward for actions that fit what is seen; episodes end by chance or after 20 steps."""

    observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.action_space = space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self._seen, {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(np.asarray(action)), action
        reward = -float(np.square(np.asarray(action, np.float64) - self._seen[0]).sum())
        self._seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self._seen, reward, bool(self.np_random.random() < 0.05), False, {}


class Shown(Reach):
    """The same where a picture shows something else, alone or beside two numbers."""

    def __init__(self, picture: spaces.Box, space: spaces.Space[Any], *, alone: bool) -> None:
        super().__init__(space)
        beside = spaces.Dict({"image": picture, "place": spaces.Box(-1.0, 1.0, (2,))})
        self.picture, self.alone = picture, alone
        self.observation_space = picture if alone else beside

    def shown(self) -> Any:
        image = self.np_random.integers(0, 256, self.picture.shape, np.uint8)
        return image if self.alone else {"image": image, "place": self._seen[:2]}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.shown(), {}

    def step(self, action: Any) -> Any:
        _, *others = super().step(action)
        return self.shown(), *others


class Goals(Reach):
    """A number that grows and falls by what is done reaches a goal, or does not.

    Where choices are made it is whole, and shown as one of nineteen.
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        super().__init__(space)
        goal: Any = spaces.Box(-9.0, 9.0, (1,), np.float32)
        if isinstance(space, spaces.Discrete):
            goal = spaces.Discrete(19)
        named = {"observation": self.observation_space, "achieved_goal": goal, "desired_goal": goal}
        self.observation_space = spaces.Dict(named)

    def _shown(self) -> Any:
        at, goal = self._at.copy(), self._goal
        if isinstance(self.action_space, spaces.Discrete):
            at, goal = (np.int64(round(one[0]) + 9) for one in (at, goal))
        return {"observation": self._seen, "achieved_goal": at, "desired_goal": goal}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._at = np.zeros(1, np.float32)
        self._goal = self.np_random.uniform(-3, 3, 1).astype(np.float32)
        if isinstance(self.action_space, spaces.Discrete):
            self._goal = self._goal.round()
        return self._shown(), {}

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        del info
        return -(np.abs(achieved - desired).max(axis=-1) > 0.5).astype(np.float32)

    def step(self, action: Any) -> Any:
        _, _, terminated, _, info = super().step(action)
        self._at = (self._at + np.ravel(np.asarray(action, np.float32))[0]).clip(-9, 9)
        return self._shown(), self.compute_reward(self._at, self._goal, info), terminated, False, {}


class Masked(Reach):
    """One of its choices is forbidden."""

    def action_masks(self) -> Any:
        return np.arange(3) != int(3 * abs(self._seen[1])) % 3


class MaskedPictures(Masked, Shown):
    """One of its choices is forbidden, and pictures are shown."""
