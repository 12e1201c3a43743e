"""The fused engine for a policy that remembers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer

from aimbot_lab.training.fused.core.parts import Whole
from aimbot_lab.training.fused.engine import FusedEngine
from aimbot_lab.training.fused.memory.actor import RememberingActor
from aimbot_lab.training.fused.memory.gradient import ChunkGradient, Sequences
from aimbot_lab.training.fused.memory.policy import remembering_weights, shown_to
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy


class RememberingEngine(FusedEngine):
    """`FusedEngine` for policies with a memory: minibatches are shuffled whole chunks."""

    def _make_parts(self) -> None:
        policy = self._policy
        assert isinstance(policy, RememberingPolicy)
        sizes, weights = remembering_weights(policy)
        self._memory, self._sizes, self.shape, self._weights = policy, sizes, sizes.shown, weights
        self._gradient = self._chunks = ChunkGradient(sizes, weights.whole)
        self.actor = RememberingActor(policy, sizes, weights)

    def _one_sample(self) -> Sequences:
        sample = self.actor.rollout.rows[0]
        state = self._memory.rollout.empty(1, th.device("cpu"))
        return self._chunks.sequences_of(sample, np.zeros((1, 1), np.float32), [state])

    def _features(self, observations: th.Tensor) -> Any:
        return shown_to(self._memory, observations)

    def _rows(self, buffer: RolloutBuffer) -> Sequences:
        rows = super()._rows(buffer)
        return self._chunks.sequences_of(rows, buffer.episode_starts, self._memory.rollout.kept)

    def _minibatches(self, model: PPO) -> Iterator[tuple[Whole, Whole]]:
        """(chunks, numbers of their samples step by step) of each minibatch of one pass."""
        buffer, length = model.rollout_buffer, self._sizes.length
        places, steps = buffer.buffer_size // length, np.arange(length)
        order = np.random.permutation(places * buffer.n_envs)
        count = model.batch_size // length
        for start in range(0, len(order), count):
            chunks = order[start : start + count]
            rows, place = np.divmod(chunks, places)
            at = place[:, None] * length + steps
            yield chunks, (at * buffer.n_envs + rows[:, None]).ravel()
