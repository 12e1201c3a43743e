"""Gymnasium environments that are slow as builds of games are: one that hangs now and then, and
one whose wins are far shorter than its losses.
"""

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

STEP_S = 0.0005
HANG_S = 0.5
UNEVEN_STEP_S = 0.002
HANGS = 0.05 / 64  # a step; so 5 % of the rollouts of 64 steps of a row


class Timed(gymnasium.Env[np.ndarray, int]):
    """An episode lasts as many steps as are `left`, each of some time."""

    action_space = spaces.Discrete(2)
    left = 16

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.begin()
        return self.seen(), {}

    def step(self, action: int) -> Any:
        reward = self.reward(action)
        self.left -= 1
        return self.seen(), reward, self.left == 0, False, {}


class Hiccuping(Timed):
    """Says a bit, and rewards the action that repeats it; an episode has 16 steps."""

    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)

    def begin(self) -> None:
        self.left = 16

    def reward(self, action: int) -> float:
        time.sleep(HANG_S if self.np_random.random() < HANGS else STEP_S)
        return float(action == self._bit)

    def seen(self) -> np.ndarray:
        self._bit = int(self.np_random.integers(2))
        return np.array([self._bit], np.float32)


class Uneven(Timed):
    """Shows noise; half of the episodes are won after 3 steps, the others lost after 25."""

    observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)

    def begin(self) -> None:
        self._wins = bool(self.np_random.random() < 0.5)
        self.left = 3 if self._wins else 25

    def reward(self, action: int) -> float:
        time.sleep(UNEVEN_STEP_S)
        return float(self.left == 1 and self._wins)

    def seen(self) -> np.ndarray:
        return self.np_random.random(2, np.float32)


gymnasium.register("Hiccuping-v0", entry_point=Hiccuping)
gymnasium.register("Uneven-v0", entry_point=Uneven)
