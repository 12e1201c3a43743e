"""The fused engine for networks of parts."""

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
from aimbot_lab.training.shards import Shards


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

    def _pieces(self, buffer: RolloutBuffer, shards: Shards) -> Whole:
        """What the minibatches are made of [S, N], shard by shard: numbers of chunks."""
        places = buffer.buffer_size // self._sizes.length
        return np.arange(places * buffer.n_envs).reshape(shards.here, -1)

    def _minibatch_size(self, model: PPO) -> int:
        return model.batch_size // self._sizes.length

    def _samples_of(self, pieces: Whole, buffer: RolloutBuffer) -> Whole:
        length = self._sizes.length
        rows, places = np.divmod(pieces, buffer.buffer_size // length)
        at = places[..., None] * length + np.arange(length)
        samples: Whole = (at * buffer.n_envs + rows[..., None]).reshape(len(pieces), -1)
        return samples
