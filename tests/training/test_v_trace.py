"""V-trace against its definition, and against GAE where the two agree."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from aimbot_lab.training.actors.correction import v_trace

T, N = 24, 7


class Steps(NamedTuple):
    rewards: Any  # [T, N]
    ends: Any  # [T, N]
    values: Any  # [T, N]
    last_values: Any  # [N]
    ratios: Any  # [T, N]


def random_steps(seed: int = 0) -> Steps:
    random = np.random.default_rng(seed)
    numbers = random.normal(size=(3, T, N)).astype(np.float32)
    last = random.normal(size=N).astype(np.float32)
    return Steps(numbers[0], random.random((T, N)) < 0.1, numbers[1], last, np.exp(numbers[2]))


def of_sb3(steps: Steps, *, gamma: float, gae_lambda: float) -> RolloutBuffer:
    box = spaces.Box(-1.0, 1.0, (1,))
    found = RolloutBuffer(T, box, box, gamma=gamma, gae_lambda=gae_lambda, n_envs=N)
    found.rewards, found.values = steps.rewards.copy(), steps.values.copy()
    found.episode_starts[1:] = steps.ends[:-1]
    found.compute_returns_and_advantage(th.from_numpy(steps.last_values), steps.ends[-1])
    return found


@pytest.mark.parametrize("gae_lambda", [1.0, 0.95, 0.0])
def test_with_equal_policies_it_is_gae(gae_lambda: float) -> None:
    steps = random_steps()._replace(ratios=np.ones((T, N), np.float32))
    found = v_trace(**steps._asdict(), gamma=0.97, gae_lambda=gae_lambda)
    gae = of_sb3(steps, gamma=0.97, gae_lambda=gae_lambda)
    np.testing.assert_allclose(found, gae.advantages, rtol=1e-4, atol=1e-5)


def test_three_steps_by_hand_with_ratios_above_and_below_the_cuts() -> None:
    column = np.array([[1.0], [2.0], [-1.0]], np.float32)  # rewards
    values = np.array([[0.5], [1.0], [2.0]], np.float32)
    ratios = np.array([[0.5], [3.0], [0.25]], np.float32)
    ends, last = np.zeros((3, 1), np.bool_), np.array([4.0], np.float32)
    found = v_trace(
        column, ends, values=values, last_values=last, ratios=ratios, gamma=0.5, gae_lambda=1.0
    )
    # d = 1 + .5 - .5 = 1; 2 + 1 - 1 = 2; -1 + 2 - 2 = -1. rho = c = .5, 2, .25.
    third = 0.25 * -1.0  # v_3 - V_3
    second = 2.0 * 2.0 + 0.5 * 2.0 * third
    first = 0.5 * 1.0 + 0.5 * 0.5 * second
    np.testing.assert_allclose(found[:, 0], [first, second, third])


def test_the_targets_are_the_sum_of_the_definition() -> None:
    steps, gamma = random_steps(1), 0.9
    targets = steps.values + v_trace(**steps._asdict(), gamma=gamma, gae_lambda=1.0)
    following = np.vstack([steps.values[1:], steps.last_values[None]])
    cut = np.minimum(2.0, steps.ratios)
    delta = cut * (steps.rewards + gamma * ~steps.ends * following - steps.values)
    for start in range(T):
        weight, total = np.ones(N), steps.values[start].astype(np.float64)
        for t in range(start, T):
            total += weight * delta[t]
            weight = weight * gamma * cut[t] * ~steps.ends[t]
        np.testing.assert_allclose(targets[start], total, rtol=1e-4, atol=1e-5)


def test_nothing_crosses_an_episodes_end() -> None:
    steps = random_steps(2)
    steps.ends[10] = True
    other = steps._replace(rewards=steps.rewards.copy(), values=steps.values.copy())
    other.rewards[11:] += 5.0
    other.values[11:] -= 3.0
    one, two = (v_trace(**one._asdict(), gamma=0.9, gae_lambda=0.9) for one in (steps, other))
    np.testing.assert_array_equal(one[:11], two[:11])
