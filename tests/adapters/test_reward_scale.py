"""Rewards over the running spread of discounted returns, beside stable-baselines3's."""

import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecNormalize

from aimbot_lab.adapters.sb3 import (
    ConstantRewardScale,
    RunningRewardScale,
    WorldVecEnv,
    reward_scale,
)
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings

ROWS, GAMMA = 16, 0.97


def adapter(scale: RunningRewardScale | None = None) -> WorldVecEnv:
    world = Arena(ArenaSettings(num_envs=ROWS, time_limit=2.0))
    world.set_scenario(Scenario({"goto": 1.0}))
    return WorldVecEnv(world, seed=3, reward_scale=1.0 if scale is None else scale)


def test_running_rewards_are_those_of_vec_normalize_to_the_bit() -> None:
    ours = adapter(RunningRewardScale(ROWS, gamma=GAMMA))
    theirs = VecNormalize(adapter(), norm_obs=False, gamma=GAMMA)
    rng, ended, largest = np.random.default_rng(0), 0, 0.0
    for episode in range(2):
        assert np.array_equal(ours.reset(), theirs.reset()), episode
        for _ in range(50):
            actions = rng.integers(0, ours.action_space.nvec, (ROWS, 4))
            _, rewards, finished, _ = ours.step(actions)
            _, wanted, _, _ = theirs.step(actions)
            np.testing.assert_array_equal(rewards, wanted)
            assert rewards.dtype == np.float32
            ended += int(finished.sum())
            largest = max(largest, float(np.abs(rewards).max()))
    assert ended > ROWS
    assert largest > 1.0


def test_a_reward_far_beyond_all_before_is_cut_at_ten() -> None:
    scale, theirs = RunningRewardScale(2, gamma=GAMMA), np.float32([0.0, -1e9])
    still = np.zeros(2, np.bool_)
    for _ in range(1000):
        scale.scaled(np.float32([0.1, -0.1]), still)
    np.testing.assert_array_equal(scale.scaled(theirs, still), [0.0, -10.0])


def test_after_resuming_rewards_go_on_as_if_unbroken() -> None:
    rng = np.random.default_rng(1)
    steps = [
        (rng.normal(3.0, 9.0, ROWS).astype(np.float32), rng.random(ROWS) < 0.1) for _ in range(30)
    ]
    unbroken, first = (RunningRewardScale(ROWS, gamma=GAMMA) for _ in range(2))
    for step in steps[:20]:
        unbroken.scaled(*step)
        first.scaled(*step)
    second = RunningRewardScale(ROWS, gamma=GAMMA)
    kept = first.state()
    first.scaled(*steps[0])  # what was kept does not change any more
    second.resume(kept)
    for step in steps[20:]:
        np.testing.assert_array_equal(second.scaled(*step), unbroken.scaled(*step))


def test_a_constant_scale_is_a_factor_without_memory() -> None:
    constant = reward_scale(0.5, ROWS, gamma=GAMMA)
    assert isinstance(constant, ConstantRewardScale)
    rewards = np.arange(ROWS, dtype=np.float32)
    scaled = constant.scaled(rewards, np.zeros(ROWS, np.bool_))
    np.testing.assert_array_equal(scaled, rewards / 2)
    assert scaled is not rewards
    assert constant.state() == {}
    constant.resume({})
    assert isinstance(reward_scale("running", ROWS, gamma=GAMMA), RunningRewardScale)


@pytest.mark.parametrize("rows", [[True, True], [True, False], [False, False]])
def test_a_restart_forgets_returns_and_keeps_what_was_learned(rows: list[bool]) -> None:
    scale = RunningRewardScale(2, gamma=1.0)
    scale.scaled(np.float32([4.0, 8.0]), np.zeros(2, np.bool_))
    spread = scale.state()["variance"]
    scale.restart(np.array(rows))
    assert scale.state()["variance"] == spread
    kept = scale.state()["returns"].tolist()
    assert kept == [0.0 if one else value for one, value in zip(rows, (4.0, 8.0), strict=True)]
