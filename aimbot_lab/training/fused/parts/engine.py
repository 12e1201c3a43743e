"""The fused engine for networks of parts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer

from aimbot_lab.training.fused.core.parts import Whole
from aimbot_lab.training.fused.engine import FusedEngine
from aimbot_lab.training.fused.parts.actor import PartsActor
from aimbot_lab.training.fused.parts.gradient import ChunkGradient, Sequences
from aimbot_lab.training.fused.parts.policy import parts_weights, shown_to
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy


class PartsEngine(FusedEngine):
    """`FusedEngine` for networks of parts: minibatches are shuffled whole chunks."""

    def _make_parts(self) -> None:
        policy = self._policy
        assert isinstance(policy, HybridPolicy)
        sizes, weights = parts_weights(policy)
        self._sizes, self.shape, self._weights = sizes, sizes.heads, weights
        self._gradient = self._chunks = ChunkGradient(sizes, weights.whole)
        self.actor = PartsActor(policy, sizes, weights)

    def _one_sample(self) -> Sequences:
        sample, shape = self.actor.rollout.rows[0], self._sizes
        state = th.zeros(1, shape.states, shape.size)
        return self._chunks.sequences_of(sample, np.zeros((1, 1), np.float32), [state])

    def _features(self, observations: th.Tensor) -> Any:
        return shown_to(self._policy, observations)

    def _rows(self, buffer: RolloutBuffer) -> Sequences:
        policy: Any = self._policy
        kept: list[th.Tensor] = policy.rollout.kept if self._sizes.memories else []
        return self._chunks.sequences_of(super()._rows(buffer), buffer.episode_starts, kept)

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
