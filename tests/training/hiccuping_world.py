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


class Hiccuping(gymnasium.Env[np.ndarray, int]):
    """Says a bit, and rewards the action that repeats it; an episode has 16 steps."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._steps = self._bit = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._steps = 0
        return self._said(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        time.sleep(HANG_S if self.np_random.random() < HANGS else STEP_S)
        reward = float(action == self._bit)
        self._steps += 1
        return self._said(), reward, self._steps == 16, False, {}

    def _said(self) -> np.ndarray:
        self._bit = int(self.np_random.integers(2))
        return np.array([self._bit], np.float32)


class Uneven(gymnasium.Env[np.ndarray, int]):
    """Shows noise; half of the episodes are won after 3 steps, the others lost after 25."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._wins, self._left = False, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._wins = bool(self.np_random.random() < 0.5)
        self._left = 3 if self._wins else 25
        return self._seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        time.sleep(UNEVEN_STEP_S)
        self._left -= 1
        over = self._left == 0
        return self._seen(), float(over and self._wins), over, False, {}

    def _seen(self) -> np.ndarray:
        return self.np_random.random(2, np.float32)


gymnasium.register("Hiccuping-v0", entry_point=Hiccuping)
gymnasium.register("Uneven-v0", entry_point=Uneven)
