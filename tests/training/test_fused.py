"""The fused engine against the update by torch's autograd."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv

from aimbot_lab.training.duel_policy import DuelPolicy
from aimbot_lab.training.duel_ppo import DuelPPO

STEPS, ROWS, UPDATES = 96, 8, 4
BRANCHES = (3, 4)
"""Choices of every space but the Box; the first three and four of the masks, where there are."""
SPACES: dict[str, spaces.Space[Any]] = {
    "box": spaces.Box(-1.0, 1.0, (2,), np.float32),
    "discrete": spaces.Discrete(4),
    "multi_discrete": spaces.MultiDiscrete(BRANCHES),
    "hybrid": spaces.Box(np.float32([0, 0, -5]), np.float32([2, 3, 5])),
}
SETTINGS: dict[str, Any] = {
    "n_steps": STEPS,
    "batch_size": 600,  # two pieces; the second minibatch is smaller
    "n_epochs": 3,
    "ent_coef": 0.01,
    "learning_rate": lambda left: 1e-3 * left,
    "seed": 1,
    "device": "cpu",
}
KINDS = [
    ("box", {}),
    ("discrete", {}),
    ("multi_discrete", {}),
    ("multi_discrete", {"objective": "per_branch"}),
    ("hybrid", {}),
    ("hybrid", {"objective": "per_branch", "dual_clip": 1.2}),
    ("multi_discrete", {"masked": True}),
    ("hybrid", {"masked": True, "objective": "per_branch"}),
]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"clip_range_vf": 0.05, "dual_clip": 1.1, "clip_range": 0.05},
    {"normalize_advantage": False, "vf_coef": 0.0, "ent_coef": 0.1},
    {"target_kl": 0.004},
]
pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")


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
        if not self._masked:
            return self._seen
        masks = self._rng.random(sum(BRANCHES)) > 0.4
        masks[[0, 3]] = True
        return np.concatenate([self._seen, masks.astype(np.float32)])

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        return self._observe(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        reward = float(self._seen[0] * np.sum(action))
        return self._observe(), reward, self._steps % 7 == 0, self._steps % 10 == 0, {}


def model(engine: str, space: str, masked: bool = False, **given: Any) -> DuelPPO:
    th.set_num_threads(1)
    policy: dict[str, Any] = {"net_arch": {"pi": [16, 24], "vf": [16, 24]}}
    if space == "hybrid":
        policy["hybrid"] = BRANCHES
    if masked:
        policy["masked"] = BRANCHES
    policy |= given.pop("policy_kwargs", {})
    env = DummyVecEnv([lambda: Guess(SPACES[space], masked)] * ROWS)
    arguments = {**SETTINGS, "policy_kwargs": policy, **given}
    return DuelPPO(DuelPolicy, env, engine=engine, **arguments)


def learned(engine: str, space: str, **given: Any) -> DuelPPO:
    """Learned from rollouts that torch sampled, so that both engines see the same."""
    made = model(engine, space, **given)
    if made._fused is not None:
        made._fused.actor.act = lambda seen: ActorCriticPolicy.forward(made.policy, seen)
    return made.learn(UPDATES * STEPS * ROWS)


def differences(one: DuelPPO, other: DuelPPO) -> list[float]:
    """Largest difference of each weight, and of each of the optimiser's means."""
    pairs = list(zip(one.policy.parameters(), other.policy.parameters(), strict=True))
    states = [(one.policy.optimizer.state[a], other.policy.optimizer.state[b]) for a, b in pairs]
    for key in ("exp_avg", "exp_avg_sq", "step"):
        pairs += [(a[key], b[key]) for a, b in states]
    return [float((a - b).abs().max().detach()) for a, b in pairs]


@pytest.mark.parametrize("given", VARIANTS, ids=lambda given: "-".join(given) or "plain")
@pytest.mark.parametrize(("space", "kind"), KINDS)
@pytest.mark.parametrize("activation", [th.nn.Tanh, th.nn.ReLU])
def test_after_several_updates_it_has_learned_what_torch_has(
    space: str, kind: Any, given: Any, activation: Any
) -> None:
    more = {**kind, **given, "policy_kwargs": {"activation_fn": activation}}
    theirs, ours = learned("torch", space, **more), learned("fused", space, **more)
    np.testing.assert_array_equal(ours.rollout_buffer.actions, theirs.rollout_buffer.actions.reshape(ours.rollout_buffer.actions.shape)) if 0 else None
    print(max(differences(theirs, ours)), {k:(v,theirs.logger.name_to_value[k]) for k,v in ours.logger.name_to_value.items() if 'train' in k})
    assert max(differences(theirs, ours)) < 2e-6
    recorded, wanted = ours.logger.name_to_value, theirs.logger.name_to_value
    train = {key for key in wanted if key.startswith("train/")}
    assert {key for key in recorded if key.startswith("train/")} == train
    for key in train:
        assert recorded[key] == pytest.approx(wanted[key], rel=1e-3, abs=1e-5), key
