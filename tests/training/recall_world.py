"""A world of a page that asks for what it showed: step 0 a sign, then nothing, at last a question.

Without memory half of the episodes are won, whatever the player is; with it all can be.
"""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv


class RecallVecEnv(VecEnv):
    """`rows` episodes of `wait` + 2 steps; an observation is sign, whether it is asked for, 1.

    The action is 0 or 1; at the last step the one of the sign's side is rewarded by 1. With
    `cut_off` episodes are cut off, not ended. Rows begin apart, so that episodes begin anywhere in
    a chunk.
    """

    def __init__(self, rows: int, wait: int, *, seed: int = 0, cut_off: bool = False) -> None:
        space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        super().__init__(rows, space, spaces.MultiDiscrete([2]))
        self._random, self._wait, self._cut_off = np.random.default_rng(seed), wait, cut_off
        self._step = np.arange(rows) % (wait + 2)
        self._sign = self._signs(rows)
        self.won: list[bool] = []

    def _signs(self, count: int) -> np.ndarray:
        return self._random.choice([-1.0, 1.0], count)

    def _shown(self) -> np.ndarray:
        shown = np.where(self._step == 0, self._sign, 0.0)
        asked = self._step == self._wait + 1
        return np.stack([shown, asked, np.ones(self.num_envs)], axis=1).astype(np.float32)

    def reset(self) -> np.ndarray:
        return self._shown()

    def step_async(self, actions: np.ndarray) -> None:
        self._given = np.asarray(actions).reshape(self.num_envs)

    def step_wait(self) -> Any:
        ends = self._step == self._wait + 1
        right = ends & (self._given == (self._sign > 0))
        self.won += right[ends].tolist()
        last = self._shown()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in np.flatnonzero(ends):
            infos[row] = {"terminal_observation": last[row], "TimeLimit.truncated": self._cut_off}
        self._step = np.where(ends, 0, self._step + 1)
        self._sign = np.where(ends, self._signs(self.num_envs), self._sign)
        return self._shown(), right.astype(np.float32), ends, infos

    def close(self) -> None: ...

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **named: Any) -> Any:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs
