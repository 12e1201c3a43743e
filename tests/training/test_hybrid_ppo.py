"""Our PPO against those of stable-baselines3 and sb3-contrib, and its losses by closed forms."""

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
from aimbot_lab.training.algorithms.ppo_update import (
    HybridRolloutBuffer,
    approximate_kl,
    clipped_objective,
    entropy_loss,
    normalized,
    policy_loss,
    value_loss,
)
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


def learned(kind: Any, space: spaces.Space[Any], *, masked: bool = False, **given: Any) -> Any:
    th.set_num_threads(1)
    env = DummyVecEnv([lambda: Guess(space, masked=masked)] * ROWS)
    policy: Any = HybridPolicy if kind is HybridPPO else "MlpPolicy"
    return kind(policy, env, **{**SETTINGS, **given}).learn(UPDATES * STEPS * ROWS)


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
    theirs, ours = (learned(kind, SPACES[space], **given) for kind in (PPO, HybridPPO))
    assert largest_difference(theirs, ours) == 0.0
    optimizers = (m.policy.optimizer.state_dict()["state"] for m in (theirs, ours))
    for a, b in zip(*(list(state.values()) for state in optimizers), strict=True):
        assert all(th.equal(a[key], b[key]) for key in a)
    recorded, wanted = (
        {key: value for key, value in one.logger.name_to_value.items() if key.startswith("train/")}
        for one in (ours, theirs)
    )
    assert recorded == pytest.approx(wanted, rel=1e-12)


def test_a_divergence_beyond_one_and_a_half_targets_ends_an_update() -> None:
    """Before the gradient step whose minibatch shows it, and without the epochs that are left."""

    def steps_and_epochs(target: float | None) -> tuple[int, int]:
        model = learned(HybridPPO, SPACES["box"], target_kl=target, learning_rate=1e-3)
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
    theirs = learned(MaskablePPO, space)
    ours = learned(HybridPPO, space, masked=True, policy_kwargs={"masked": branches})
    np.testing.assert_array_equal(ours.rollout_buffer.actions, theirs.rollout_buffer.actions)
    assert largest_difference(theirs, ours) < 1e-6
    assert largest_difference(theirs, learned(PPO, space)) > 1e-3


def test_a_dual_clip_of_at_most_one_and_a_single_branch_are_refused() -> None:
    env = DummyVecEnv([lambda: Guess(SPACES["discrete"])])
    with pytest.raises(ValueError, match="dual_clip must be greater than 1"):
        HybridPPO(HybridPolicy, env, dual_clip=1.0)
    with pytest.raises(ValueError, match="several branches"):
        HybridPPO(HybridPolicy, env, objective="per_branch", device="cpu")


# ratio, advantage, min(r A, clip(r, 0.8, 1.2) A), and the same with dual clip 3
BY_HAND = [
    (1.0, 2.0, 2.0, 2.0),
    (1.5, 2.0, 2.4, 2.4),  # clipped from above
    (0.5, 2.0, 1.0, 1.0),
    (0.5, -2.0, -1.6, -1.6),  # clipped from below
    (1.5, -2.0, -3.0, -3.0),  # a bad action grown likelier: free
    (2.9, -2.0, -5.8, -5.8),
    (5.0, -2.0, -10.0, -6.0),  # r > c: bounded by c A
    (50.0, -0.5, -25.0, -1.5),
    (50.0, 0.5, 0.6, 0.6),  # A > 0 is not touched by dual clip
]


def test_the_objective_is_as_worked_out_by_hand_and_its_loss_minus_the_mean() -> None:
    ratios, advantages, plain, dual = th.tensor(BY_HAND).T
    for dual_clip, wanted in ((None, plain), (3.0, dual)):
        found = clipped_objective(ratios, advantages, clip_range=0.2, dual_clip=dual_clip)
        th.testing.assert_close(found, wanted, rtol=1e-6, atol=0.0)
    zeros = th.zeros(len(BY_HAND))
    loss, clipped, _ = policy_loss(ratios.log(), zeros, advantages, clip_range=0.2, dual_clip=3.0)
    assert loss.item() == pytest.approx(-dual.mean().item())
    assert clipped.item() == pytest.approx(8 / 9)


def test_beyond_the_dual_clip_nothing_is_learned() -> None:
    ratios = th.tensor([2.0, 5.0], requires_grad=True)
    clipped_objective(ratios, th.tensor([-1.0]), clip_range=0.2, dual_clip=3.0).sum().backward()
    assert ratios.grad is not None
    assert ratios.grad.tolist() == [-1.0, 0.0]


def test_branches_are_clipped_each_by_itself_and_summed() -> None:
    # Sample 1: A = 2 with ratios 1.5 and 0.5; sample 2: A = -1 with ratios 4 and 1.
    ratios, advantages = th.tensor([[1.5, 0.5], [4.0, 1.0]]), th.tensor([2.0, -1.0])
    for given, dual_clip, loss in (
        (ratios.log(), None, -((2.4 + 1.0) + (-4.0 - 1.0)) / 2),
        (ratios.log(), 3.0, -((2.4 + 1.0) + (-3.0 - 1.0)) / 2),
        (ratios.log().sum(1), None, -(1.5 - 4.0) / 2),  # the joint ratios are 0.75 and 4
    ):
        zeros = th.zeros_like(given)
        found, *_ = policy_loss(given, zeros, advantages, clip_range=0.2, dual_clip=dual_clip)
        assert found.item() == pytest.approx(loss)


def test_divergence_value_loss_entropy_and_normalisation_by_hand() -> None:
    log_ratio, total = th.tensor([[0.1, -0.3], [0.2, 0.0]]), np.array([-0.2, 0.2])
    expected = np.mean(np.exp(total) - 1 - total)  # of whole actions
    for given in (log_ratio, log_ratio.sum(1)):
        assert approximate_kl(given, th.zeros_like(given)).item() == pytest.approx(expected)
    values, old, returns = th.tensor([1.0, 3.0]), th.tensor([0.0, 3.0]), th.tensor([2.0, 3.0])
    assert value_loss(values, old, returns, None).item() == pytest.approx(0.5)
    assert value_loss(values, old, returns, 0.5).item() == pytest.approx(1.5**2 / 2)
    assert entropy_loss(th.tensor([1.0, 2.0]), th.zeros(2)).item() == -1.5
    assert entropy_loss(None, th.tensor([-1.0, -2.0])).item() == -1.5
    np.testing.assert_allclose(normalized(th.tensor([1.0, 3.0])), [-(0.5**0.5), 0.5**0.5], 1e-6)
    assert normalized(th.tensor([7.0])).item() == 7.0


def test_log_probabilities_of_branches_come_out_with_their_samples() -> None:
    seen, actions = spaces.Box(-1.0, 1.0, (3,), np.float32), spaces.MultiDiscrete([3, 2])
    buffer, rng = (
        HybridRolloutBuffer(7, seen, actions, n_envs=5, branches=2),
        np.random.default_rng(0),
    )
    log_probs = rng.normal(size=(7, 5, 2)).astype(np.float32)
    for step in range(7):
        number = np.full((5, 3), 5 * step) + np.arange(5)[:, None]
        starts, zeros = np.zeros(5, np.bool_), np.zeros(5, np.float32)
        values = th.zeros(5, 1)
        buffer.add(number, np.zeros((5, 2)), zeros, starts, values, th.tensor(log_probs[step]))
    buffer.compute_returns_and_advantage(th.zeros(5, 1), np.zeros(5, np.bool_))
    data = next(buffer.get(None))
    sample = data.observations[:, 0].long().numpy()
    np.testing.assert_array_equal(data.old_log_prob, log_probs.reshape(-1, 2)[sample])
