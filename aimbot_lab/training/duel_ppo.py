"""Our own PPO: stable-baselines3's with an objective per branch, dual clip, hybrid and masks."""

from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from aimbot_lab.training.update import update

Objective = Literal["joint", "per_branch"]


class BranchRolloutBuffer(RolloutBuffer):
    """A rollout that keeps the log-probability of every branch."""

    def __init__(self, *args: Any, branches: int, **arguments: Any) -> None:
        self._branches = branches
        super().__init__(*args, **arguments)

    def reset(self) -> None:
        """Empty the buffer."""
        super().reset()
        shape = self.buffer_size, self.n_envs, self._branches
        self.log_probs = np.zeros(shape, np.float32)  # [T, B, K]

    def _get_samples(
        self, batch_inds: np.ndarray, env: VecNormalize | None = None
    ) -> RolloutBufferSamples:
        samples = super()._get_samples(batch_inds, env)
        return samples._replace(
            old_log_prob=samples.old_log_prob.reshape(len(batch_inds), self._branches)
        )


class DuelPPO(PPO):
    """PPO of stable-baselines3, to the bit where no switch is on.

    `objective` per_branch: each branch of an action has its own probability ratio and clipped
    objective, and these are summed. `dual_clip` c: where the advantage A is negative the
    objective is no less than c A. Hybrid actions and masks are its policy's matter.
    """

    def __init__(
        self,
        *args: Any,
        objective: Objective = "joint",
        dual_clip: float | None = None,
        **arguments: Any,
    ) -> None:
        if dual_clip is not None and dual_clip <= 1.0:
            raise ValueError(f"dual_clip must be greater than 1 (got {dual_clip:g})")
        self.objective, self.dual_clip = objective, dual_clip
        super().__init__(*args, **arguments)

    def _setup_model(self) -> None:
        if self.objective == "per_branch":
            self.policy_kwargs["per_branch"] = True
            self.rollout_buffer_class = BranchRolloutBuffer
            self.rollout_buffer_kwargs["branches"] = self._branches()
        super()._setup_model()

    def _branches(self) -> int:
        """How many parts an action has."""
        if isinstance(self.action_space, spaces.MultiDiscrete):
            return len(self.action_space.nvec)
        if self.policy_kwargs.get("hybrid"):
            assert self.action_space.shape is not None
            return self.action_space.shape[0]
        raise ValueError("objective per_branch needs actions of several branches")

    def train(self) -> None:
        """Improve the policy by the rollout in the buffer."""
        update(self, dual_clip=self.dual_clip)
