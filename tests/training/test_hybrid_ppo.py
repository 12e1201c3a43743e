"""Our PPO against those of stable-baselines3 and sb3-contrib."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as th
from guessing import SPACES, Guess
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy

STEPS, ROWS, UPDATES = 32, 4, 3
SETTINGS: dict[str, Any] = {
    "n_steps": STEPS,
    "batch_size": 48,  # which does not divide the rollout: the last minibatch is smaller
    "n_epochs": 3,
    "ent_coef": 0.01,
    "learning_rate": lambda left: 1e-3 * left,
    "seed": 1,
    "device": "cpu",
}
pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")


def learned(kind: Callable[..., Any], policy: Any, env: Callable[[], Guess], **given: Any) -> Any:
    th.set_num_threads(1)
    model = kind(policy, DummyVecEnv([env] * ROWS), **{**SETTINGS, **given})
    return model.learn(UPDATES * STEPS * ROWS)


def largest_difference(one: Any, other: Any) -> float:
    pairs = zip(one.policy.state_dict().values(), other.policy.state_dict().values(), strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs)


@pytest.mark.parametrize(
    ("space", "given"),
    [
        ("discrete", {}),
        ("box", {"clip_range_vf": 0.1, "target_kl": 0.002}),
        ("multi_discrete", {"normalize_advantage": False}),
    ],
)
def test_without_switches_it_is_stable_baselines3_to_the_bit(space: str, given: Any) -> None:
    def env() -> Guess:
        return Guess(SPACES[space])

    theirs = learned(PPO, "MlpPolicy", env, **given)
    ours = learned(HybridPPO, HybridPolicy, env, **given)
    assert largest_difference(theirs, ours) == 0.0
    optimizers = (m.policy.optimizer.state_dict()["state"] for m in (theirs, ours))
    for a, b in zip(*(list(state.values()) for state in optimizers), strict=True):
        assert all(th.equal(a[key], b[key]) for key in a)
    recorded, wanted = ours.logger.name_to_value, theirs.logger.name_to_value
    train = {key for key in wanted if key.startswith("train/")}
    assert {key for key in recorded if key.startswith("train/")} == train
    for key in train:
        assert recorded[key] == pytest.approx(wanted[key], rel=1e-12), key


def test_a_divergence_beyond_one_and_a_half_targets_ends_an_update() -> None:
    """Before the gradient step whose minibatch shows it, and without the epochs that are left."""

    def steps_and_epochs(target: float | None) -> tuple[int, int]:
        given = {"target_kl": target, "learning_rate": 1e-3}
        model = learned(HybridPPO, HybridPolicy, lambda: Guess(SPACES["box"]), **given)
        (state, *_) = model.policy.optimizer.state_dict()["state"].values()
        return int(state["step"]), model._n_updates

    whole = STEPS * ROWS // 48 + 1
    assert steps_and_epochs(None) == (UPDATES * 3 * whole, UPDATES * 3)
    # The first minibatch of an update diverges by nothing, any other by more than this.
    assert steps_and_epochs(1e-6) == (UPDATES, UPDATES)


@pytest.mark.parametrize(
    ("space", "branches"),
    [(SPACES["multi_discrete"], (3, 4)), (spaces.Discrete(7), (7,))],
    ids=["multi_discrete", "discrete"],
)
def test_with_masks_it_is_maskable_ppo(space: spaces.Space[Any], branches: tuple[int, ...]) -> None:
    """Within 1e-6 after three updates: the same choices, probabilities rounded differently."""
    theirs = learned(MaskablePPO, "MlpPolicy", lambda: Guess(space))
    ours = learned(
        HybridPPO,
        HybridPolicy,
        lambda: Guess(space, masked=True),
        policy_kwargs={"masked": branches},
    )
    np.testing.assert_array_equal(ours.rollout_buffer.actions, theirs.rollout_buffer.actions)
    assert largest_difference(theirs, ours) < 1e-6
    unmasked = learned(PPO, "MlpPolicy", lambda: Guess(space))
    assert largest_difference(theirs, unmasked) > 1e-3


def test_per_branch_ratios_start_at_one_for_every_branch() -> None:
    arguments = {"policy_kwargs": {"hybrid": (3, 4)}}
    model = HybridPPO(
        HybridPolicy,
        DummyVecEnv([lambda: Guess(SPACES["hybrid"])] * ROWS),
        objective="per_branch",
        **{**SETTINGS, **arguments, "batch_size": 64, "n_epochs": 1, "learning_rate": 0.0},
    )
    model.learn(STEPS * ROWS)
    for data in model.rollout_buffer.get(64):
        _, log_prob, _ = model.policy.evaluate_actions(data.observations, data.actions)
        assert log_prob.shape == (64, 3)
        assert th.allclose(log_prob, data.old_log_prob, atol=1e-6)


def test_a_dual_clip_of_at_most_one_and_a_single_branch_are_refused() -> None:
    env = DummyVecEnv([lambda: Guess(SPACES["discrete"])])
    with pytest.raises(ValueError, match="dual_clip must be greater than 1"):
        HybridPPO(HybridPolicy, env, dual_clip=1.0)
    with pytest.raises(ValueError, match="several branches"):
        HybridPPO(HybridPolicy, env, objective="per_branch", device="cpu")
