"""Snapshots at play: a policy with a snapshot's weights acts for some rows of a world."""

from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import torch as th
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.evaluation.temperature import SAMPLED
from aimbot_lab.foundation.world import BoolArray, Float32Array, WorldSpec
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.engines.engine import UnsuitedError
from aimbot_lab.training.fused.actor import FusedActor
from aimbot_lab.training.fused.policy import fused_weights
from aimbot_lab.training.self_play.pool import Weights
from aimbot_lab.training.settings import TrainSettings

BLOCK = 16  # rows: buffers are as long as a multiple of it, so that few lengths occur


class SnapshotPlayer(Protocol):
    """Samples actions as in training; random numbers are torch's."""

    def act(
        self, observations: Float32Array, masks: BoolArray, state: Any, starts: BoolArray
    ) -> tuple[Float32Array, Any]:
        """(world actions [R, A], memory [R, ...] or None) for `observations` [R, D]."""
        ...


class TorchPlayer:
    """A snapshot of any policy, by torch."""

    def __init__(self, policy: BasePolicy, spec: WorldSpec, train: TrainSettings) -> None:
        self._agent = Agent(policy, spec, train)

    def act(
        self, observations: Float32Array, masks: BoolArray, state: Any, starts: BoolArray
    ) -> tuple[Float32Array, Any]:
        """(world actions [R, A], memory) for `observations` [R, D]."""
        return self._agent.choose(
            observations, state=state, starts=starts, branch_masks=masks, temperature=SAMPLED
        )


class FusedPlayer:
    """A snapshot of a policy that the fused engine knows, by its kernels."""

    def __init__(self, policy: Any, spec: WorldSpec, train: TrainSettings) -> None:
        self._policy, self._agent = policy, Agent(policy, spec, train)
        self._shape, self._weights = fused_weights(policy)
        self._masked = bool(policy.masked)
        self._actors: dict[int, FusedActor] = {}  # by the rows that they have room for

    def act(
        self, observations: Float32Array, masks: BoolArray, state: Any, starts: BoolArray
    ) -> tuple[Float32Array, Any]:
        """(world actions [R, A], None) for `observations` [R, D]."""
        del state, starts
        rows = len(observations)
        room = -(-rows // BLOCK) * BLOCK
        columns = observations.shape[1]
        shown = np.zeros((room, columns + (masks.shape[1] if self._masked else 0)), np.float32)
        shown[:rows, :columns] = observations
        if self._masked:
            shown[:rows, columns:] = masks
            shown[rows:, columns:] = 1.0
        chosen = self._actor(room).act(th.from_numpy(shown))[0][:rows].numpy()
        return self._agent.world_actions(chosen, observations), None

    def _actor(self, room: int) -> FusedActor:
        if room not in self._actors:
            self._actors[room] = FusedActor(self._policy, self._shape, self._weights)
            self._actors[room].begin(1, room)
        return self._actors[room]


def new_player(
    weights: Weights, spec: WorldSpec, train: TrainSettings, *, engine: str
) -> SnapshotPlayer:
    """Who plays by `weights`; `engine` is what the learner computes with."""
    with th.random.fork_rng(devices=[]):  # its first weights are drawn, and then replaced
        policy = new_policy(train, spec)
    policy.load_state_dict(dict(weights))
    policy.set_training_mode(False)
    if engine == "fused":
        with suppress(UnsuitedError):  # such as a policy that remembers
            return FusedPlayer(policy, spec, train)
    return TorchPlayer(policy, spec, train)
