"""A small game with any actions, and models of our PPO that learn it."""

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy
from aimbot_lab.training.networks.remembering_policy import RememberingPolicy
from aimbot_lab.training.processes.exchange import Shards, permutations, usual_count

STEPS, ROWS, UPDATES = 80, 8, 2
BRANCHES = (3, 4)
"""Sizes of the choices, of those with masks too."""
SPACES: dict[str, spaces.Space[Any]] = {
    "box": spaces.Box(-1.0, 1.0, (2,), np.float32),
    "discrete": spaces.Discrete(4),
    "multi_discrete": spaces.MultiDiscrete(BRANCHES),
    "hybrid": spaces.Box(np.float32([0, 0, -5]), np.float32([2, 3, 5])),
}
SETTINGS: dict[str, Any] = {
    "n_steps": STEPS,
    "batch_size": 600,  # two pieces of samples; the second minibatch is smaller
    "n_epochs": 3,
    "ent_coef": 0.01,
    "learning_rate": lambda left: 1e-3 * (0.5 + left),
    "seed": 1,
    "device": "cpu",
}


class Guess(gym.Env[Any, Any]):
    """A reward for actions that fit the observation; some episodes end, some are cut off."""

    def __init__(self, space: spaces.Space[Any], masked: bool = False) -> None:
        self.action_space, self._masked = space, masked
        size = 3 + (sum(BRANCHES) if masked else 0)
        self.observation_space = spaces.Box(-1, 1, (size,), np.float32)
        self._rng = np.random.default_rng(0)
        self._steps = 0

    def _observe(self) -> np.ndarray:
        self._seen = self._rng.uniform(-1, 1, 3).astype(np.float32)
        self._masks = self._rng.random(sum(BRANCHES)) > 0.4
        self._masks[[0, BRANCHES[0]]] = True
        if not self._masked:
            return self._seen
        return np.concatenate([self._seen, self._masks.astype(np.float32)])

    def action_masks(self) -> np.ndarray:
        return self._masks

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        return self._observe(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        reward = float(self._seen[0] * np.sum(action))
        return self._observe(), reward, self._steps % 7 == 0, self._steps % 10 == 0, {}


def new_model(engine: str, space: str, masked: bool = False, **given: Any) -> HybridPPO:
    th.set_num_threads(1)
    policy: dict[str, Any] = {"net_arch": {"pi": [16, 24], "vf": [16, 24]}}
    if space == "hybrid":
        policy["hybrid"] = BRANCHES
    if masked:
        policy["masked"] = BRANCHES
    policy |= given.pop("policy_kwargs", {})
    env = DummyVecEnv([lambda: Guess(SPACES[space], masked)] * ROWS)
    arguments = {**SETTINGS, "policy_kwargs": policy, **given}
    kind = RememberingPolicy if "memory" in policy else HybridPolicy
    return HybridPPO(kind, env, engine=engine, **arguments)


def learned(engine: str, space: str, **given: Any) -> HybridPPO:
    """Learned from rollouts that torch has sampled, in the same minibatches with both engines."""
    model = new_model(engine, space, **given)
    if model.engine.name == "fused":
        act_by_torch(model)
    else:
        take_sharded_minibatches(model)
    return model.learn(UPDATES * STEPS * ROWS)


def act_by_torch(model: HybridPPO) -> None:
    """Have the policy act and value rollouts' ends by torch."""
    model.engine.actor.act = lambda seen: by_torch(model, seen)
    model.engine.actor.values = lambda seen: values_by_torch(model, seen)


def take_sharded_minibatches(model: HybridPPO) -> None:
    """Have torch learn from the minibatches that the fused engine makes."""
    buffer: Any = model.rollout_buffer
    length = buffer._shape.length if hasattr(buffer, "_shape") else 1
    batch, size = model.batch_size // length, buffer.buffer_size * buffer.n_envs // length
    count = usual_count(buffer.n_envs, batch, samples=length)
    shards = Shards(count, 0, count, buffer.n_envs // count)
    epochs = itertools.cycle(range(model.n_epochs))

    def get(_: int) -> Any:
        update, each = model.num_timesteps, size // count
        seed = model.stream_seed
        order = permutations(shards, each, seed=seed, update=update, epoch=next(epochs))
        order = order + each * np.arange(count)[:, None]
        list(type(buffer).get(buffer, None))  # brings the arrays into their form
        make = buffer._get_samples if length == 1 else buffer._minibatch
        for first in range(0, each, batch // count):
            yield make(order[:, first : first + batch // count].ravel())

    buffer.get = get


def values_by_torch(model: HybridPPO, seen: th.Tensor) -> Any:
    policy: Any = model.policy
    values, policy.values = policy.values, None
    try:
        return policy.predict_values(seen)
    finally:
        policy.values = values


def by_torch(model: HybridPPO, seen: th.Tensor) -> Any:
    policy: Any = model.policy
    act, policy.act = policy.act, None
    try:
        return policy.forward(seen)
    finally:
        policy.act = act


def differences(one: HybridPPO, other: HybridPPO) -> list[float]:
    """The largest of each weight and of each of the optimiser's means."""
    pairs = list(zip(one.policy.parameters(), other.policy.parameters(), strict=True))
    states = [(one.policy.optimizer.state[a], other.policy.optimizer.state[b]) for a, b in pairs]
    for key in ("exp_avg", "exp_avg_sq", "step"):
        pairs += [(a[key], b[key]) for a, b in states]
    return [float((a - b).abs().max().detach()) for a, b in pairs]
