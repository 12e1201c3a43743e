"""Losses by closed forms, and the buffer of rollouts."""

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from aimbot_lab.training.algorithms.ppo_update import (
    HybridRolloutBuffer,
    approximate_kl,
    clipped_objective,
    entropy_loss,
    normalized,
    policy_loss,
    value_loss,
)

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


@pytest.mark.parametrize(("ratio", "advantage", "plain", "dual"), BY_HAND)
def test_the_objective_is_as_worked_out_by_hand(
    ratio: float, advantage: float, plain: float, dual: float
) -> None:
    given = th.tensor([ratio]), th.tensor([advantage])
    assert clipped_objective(*given, clip_range=0.2, dual_clip=None).item() == pytest.approx(plain)
    assert clipped_objective(*given, clip_range=0.2, dual_clip=3.0).item() == pytest.approx(dual)


def test_beyond_the_dual_clip_nothing_is_learned() -> None:
    for ratio, gradient in ((2.0, -1.0), (5.0, 0.0)):
        moved = th.tensor([ratio], requires_grad=True)
        clipped_objective(moved, th.tensor([-1.0]), clip_range=0.2, dual_clip=3.0).sum().backward()
        assert moved.grad is not None
        assert moved.grad.item() == gradient


def test_a_joint_loss_is_minus_the_mean_over_samples() -> None:
    ratios = th.tensor([ratio for ratio, *_ in BY_HAND])
    advantages = th.tensor([advantage for _, advantage, *_ in BY_HAND])
    loss, clipped, _ = policy_loss(
        ratios.log(), th.zeros(9), advantages, clip_range=0.2, dual_clip=3.0
    )
    assert loss.item() == pytest.approx(-np.mean([dual for *_, dual in BY_HAND]))
    assert clipped.item() == pytest.approx(8 / 9)


def test_branches_are_clipped_each_by_itself_and_summed() -> None:
    # Sample 1: A = 2 with ratios 1.5 and 0.5; sample 2: A = -1 with ratios 4 and 1.
    ratios, advantages = th.tensor([[1.5, 0.5], [4.0, 1.0]]), th.tensor([2.0, -1.0])
    zeros = th.zeros(2, 2)
    plain, *_ = policy_loss(ratios.log(), zeros, advantages, clip_range=0.2)
    assert plain.item() == pytest.approx(-((2.4 + 1.0) + (-4.0 - 1.0)) / 2)
    dual, *_ = policy_loss(ratios.log(), zeros, advantages, clip_range=0.2, dual_clip=3.0)
    assert dual.item() == pytest.approx(-((2.4 + 1.0) + (-3.0 - 1.0)) / 2)
    # The joint ratios are 0.75 and 4.
    joint, *_ = policy_loss(ratios.log().sum(1), zeros.sum(1), advantages, clip_range=0.2)
    assert joint.item() == pytest.approx(-(1.5 - 4.0) / 2)


def test_the_divergence_is_that_of_whole_actions() -> None:
    log_ratio = th.tensor([[0.1, -0.3], [0.2, 0.0]])
    total = np.array([-0.2, 0.2])
    expected = np.mean(np.exp(total) - 1 - total)
    zeros = th.zeros(2, 2)
    assert approximate_kl(log_ratio, zeros).item() == pytest.approx(expected)
    assert approximate_kl(log_ratio.sum(1), zeros.sum(1)).item() == pytest.approx(expected)


def test_value_loss_entropy_and_normalisation_by_hand() -> None:
    values, old, returns = th.tensor([1.0, 3.0]), th.tensor([0.0, 3.0]), th.tensor([2.0, 3.0])
    assert value_loss(values, old, returns, None).item() == pytest.approx(0.5)
    assert value_loss(values, old, returns, 0.5).item() == pytest.approx(1.5**2 / 2)
    assert entropy_loss(th.tensor([1.0, 2.0]), th.zeros(2)).item() == -1.5
    assert entropy_loss(None, th.tensor([-1.0, -2.0])).item() == -1.5
    np.testing.assert_allclose(normalized(th.tensor([1.0, 3.0])), [-(0.5**0.5), 0.5**0.5], 1e-6)
    assert normalized(th.tensor([7.0])).item() == 7.0


STEPS, ROWS = 7, 5
SEEN = spaces.Box(-1.0, 1.0, (3,), np.float32)
ACTIONS = {
    "choices": spaces.MultiDiscrete([3, 2]),
    "one choice": spaces.Discrete(4),
    "columns": spaces.Box(-1.0, 1.0, (2,), np.float32),
}


def fill(buffer: RolloutBuffer, seed: int, *, branches: int | None = None) -> None:
    """A rollout of random numbers."""
    rng, width = np.random.default_rng(seed), buffer.action_dim
    buffer.reset()
    for _ in range(STEPS):
        log_probs = rng.normal(size=ROWS if branches is None else (ROWS, branches))
        buffer.add(
            rng.normal(size=(ROWS, 3)).astype(np.float32),
            rng.integers(2, size=(ROWS, width)),
            rng.normal(size=ROWS).astype(np.float32),
            rng.random(ROWS) < 0.3,
            th.tensor(rng.normal(size=(ROWS, 1)), dtype=th.float32),
            th.tensor(log_probs, dtype=th.float32),
        )
    last = th.tensor(rng.normal(size=(ROWS, 1)), dtype=th.float32)
    buffer.compute_returns_and_advantage(last, rng.random(ROWS) < 0.3)


def test_log_probabilities_of_branches_come_out_with_their_samples() -> None:
    buffer = HybridRolloutBuffer(
        STEPS, SEEN, ACTIONS["choices"], device="cpu", n_envs=ROWS, branches=2
    )
    fill(buffer, 0, branches=2)
    kept = buffer.log_probs.copy()
    data = next(buffer.get(None))
    order = np.lexsort(kept.reshape(-1, 2).T)
    found = data.old_log_prob.numpy()
    np.testing.assert_array_equal(found[np.lexsort(found.T)], kept.reshape(-1, 2)[order])
