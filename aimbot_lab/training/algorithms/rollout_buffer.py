"""The rollout buffer of our own PPO."""

from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.vec_env import VecNormalize


class HybridRolloutBuffer(RolloutBuffer):
    """stable-baselines3's buffer in less time: it keeps its memory, and copies a step once.

    With `branches` it keeps the log-probability of each of so many branches.
    """

    def __init__(self, *args: Any, branches: int | None = None, **arguments: Any) -> None:
        self._branches = branches
        self._whole = False  # whether the arrays are there, in the form of a rollout
        super().__init__(*args, **arguments)

    def reset(self) -> None:
        """Empty the buffer; what it held stays to be written over."""
        if self._whole and not self.generator_ready:  # a generator gives the arrays another form
            self.pos, self.full = 0, False
            return
        super().reset()
        self._whole = True
        if self._branches is not None:
            shape = self.buffer_size, self.n_envs, self._branches
            self.log_probs = np.zeros(shape, np.float32)  # [T, B, K]

    def add(
        self,
        obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        episode_start: np.ndarray,
        value: th.Tensor,
        log_prob: th.Tensor,
    ) -> None:
        """Keep a step: of each of B environments what stable-baselines3's buffer keeps."""
        at = self.pos
        self.observations[at] = obs
        self.actions[at] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[at] = reward
        self.episode_starts[at] = episode_start
        self.values[at] = value.numpy(force=True).reshape(self.n_envs)
        self.log_probs[at] = log_prob.numpy(force=True).reshape(self.log_probs[at].shape)
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def _get_samples(
        self, batch_inds: np.ndarray, env: VecNormalize | None = None
    ) -> RolloutBufferSamples:
        samples = super()._get_samples(batch_inds, env)
        if self._branches is None:
            return samples
        return samples._replace(
            old_log_prob=samples.old_log_prob.reshape(len(batch_inds), self._branches)
        )
