"""A small game with any actions, and models of our PPO that learn it."""

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.ppo_update import _losses, ranges_of
from aimbot_lab.training.fused import engine as fused_engine
from aimbot_lab.training.fused.core.arrays import Loss
from aimbot_lab.training.fused.engine import Minibatch, sums_and_squares
from aimbot_lab.training.fused.layout import net_views, tensor_views
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


def whole_rollout(model: HybridPPO, loss: Loss | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(gradient, sums of the losses) over the rollout in the buffer, by the fused engine."""
    engine: Any = model.engine
    buffer = model.rollout_buffer
    engine._weights.load()
    chunks = np.random.default_rng(0).permutation(engine._pieces(buffer, model.shards).ravel())
    if loss is None:
        loss = fused_engine._loss(model, whole_minibatch(model), ranges_of(model, None))
    flat, sums = engine._gradient.of(engine._rows(buffer), chunks[None], loss, shards=1)
    return flat[0], sums[0]


def whole_minibatch(model: HybridPPO) -> Minibatch:
    """The rollout in the buffer as one minibatch, of which only the advantages are known."""
    advantages = model.rollout_buffer.advantages.reshape(1, -1)
    moments = sums_and_squares(advantages)[0]
    return Minibatch(np.zeros((1, 0), np.int64), advantages.size, moments)


def fused_gradient_of(model: HybridPPO) -> dict[str, np.ndarray]:
    """The gradient over the whole rollout by every weight of the policy, by its name."""
    engine: Any = model.engine
    shape, (flat, _) = engine.shape, whole_rollout(model)
    names = {id(weight): name for name, weight in model.policy.named_parameters()}
    found = {name: np.zeros(w.shape, np.float32) for name, w in model.policy.named_parameters()}
    tensors = list(dict.fromkeys(copied.tensor for copied in engine._weights.copies))
    for tensor, views in zip(tensors, tensor_views(shape, net_views(shape, flat)), strict=True):
        for view in views:
            found[names[id(tensor)]][view.part] = view.weights
    return found


def autograds(model: HybridPPO) -> dict[str, np.ndarray]:
    """The same by torch."""
    loss, _ = _losses(model, next(model.rollout_buffer.get(None)), ranges_of(model, None))
    model.policy.zero_grad()
    loss.backward()
    return {name: weight.grad.numpy() for name, weight in model.policy.named_parameters()}


def apart(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    """How far two gradients are apart, relative to their norm."""
    difference = np.concatenate([(one[name] - other[name]).ravel() for name in other])
    whole = np.concatenate([other[name].ravel() for name in other])
    return float(np.linalg.norm(difference) / np.linalg.norm(whole))


def ratios_and_values_moved(model: HybridPPO) -> tuple[float, float]:
    """(samples whose ratio is off 1 by more than 1e-6, sum of squares of values' changes).

    Of the rollout in the buffer, whose returns are taken for its values, by the kernels of an
    update.
    """
    buffer = model.rollout_buffer
    returns, buffer.returns = buffer.returns, buffer.values.copy()
    loss = Loss(*map(np.float32, (1.0, 0.0, 1.0, 1e-6, 0.0, 0.0, 0.0, 1.0)))
    try:
        _, sums = whole_rollout(model, loss)
    finally:
        buffer.returns = returns
    return float(sums[3]), float(sums[1])
