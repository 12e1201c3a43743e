"""The stable-baselines3 adapter, and vectorised arenas that are ready to learn."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from played_envs import ROWS, new_adapter
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from aimbot_lab.adapters.registered_envs import RegisteredEnv
from aimbot_lab.adapters.sb3 import (
    ConstantRewardScale,
    RunningRewardScale,
    WorldVecEnv,
    reward_scale,
)
from aimbot_lab.adapters.sb3_envs import make_vec_env
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings

PAGE = Path(__file__).parents[2] / "aimbot_lab" / "worlds" / "arena" / "README.md"
GAMMA = 0.97


class CopyingAdapter(WorldVecEnv):
    """An adapter that hands out copies, so that nothing it returned can change later."""

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, finished, infos = super().step_wait()
        return observations.copy(), rewards.copy(), finished.copy(), infos

    def reset(self) -> np.ndarray:
        return super().reset().copy()


class OneBufferAdapter(WorldVecEnv):
    """The mistake that the adapter avoids: every step overwrites the last observation."""

    def _next_buffers(self):
        return self._buffers[0]


def rollout(adapter: WorldVecEnv, steps: int = 64) -> dict[str, np.ndarray]:
    """What stable-baselines3's rollout buffer holds after `steps` random steps, as it adds them."""
    from torch import zeros

    buffer = RolloutBuffer(steps, adapter.observation_space, adapter.action_space, n_envs=ROWS)
    adapter.action_space.seed(5)
    last = adapter.reset()
    starts = np.ones(ROWS, bool)
    for _ in range(steps):
        actions = np.stack([adapter.action_space.sample() for _ in range(ROWS)])
        new, rewards, finished, _ = adapter.step(actions)
        buffer.add(last, actions, rewards, starts, zeros(ROWS), zeros(ROWS))
        last, starts = new, finished
    return {
        "observations": buffer.observations,
        "actions": buffer.actions,
        "rewards": buffer.rewards,
        "starts": buffer.episode_starts,
    }


def test_a_rollout_equals_that_of_a_copying_environment() -> None:
    ours, copied = rollout(new_adapter()), rollout(new_adapter(kind=CopyingAdapter))
    for name, array in copied.items():
        np.testing.assert_array_equal(ours[name], array, err_msg=name)
    assert copied["starts"].sum() > ROWS  # episodes ended on the way


def test_the_comparison_sees_two_buffers_become_one() -> None:
    broken, copied = (
        rollout(new_adapter(kind=OneBufferAdapter)),
        rollout(new_adapter(kind=CopyingAdapter)),
    )
    assert not np.array_equal(broken["observations"], copied["observations"])


def test_only_finished_rows_carry_infos_and_none_is_shared() -> None:
    adapter = new_adapter()
    adapter.reset()
    ended = 0
    for _ in range(40):
        actions = np.stack([adapter.action_space.sample() for _ in range(ROWS)])
        observations, _, finished, infos = adapter.step(actions)
        assert len({id(info) for info in infos}) == ROWS
        for row, info in enumerate(infos):
            assert bool(info) == finished[row]
            if finished[row]:
                ended += 1
                assert not info["TimeLimit.truncated"]
                assert info["is_success"] is False
                last = info["terminal_observation"]
                assert last.shape == (adapter.observation_space.shape[0],)
                assert not np.array_equal(last, observations[row])
    assert ended > 0


def test_a_win_is_a_success_in_its_row_alone() -> None:
    world = Arena(ArenaSettings(num_envs=3, free_enemies=1))
    world.set_scenario(Scenario({"free": 1.0}))
    adapter = WorldVecEnv(world)
    adapter.reset()
    state = world.state
    state.position[1], state.yaw[1], state.enemies[1, 0] = (10.0, 10.0), 0.0, (10.0, 15.0)
    infos = adapter.step(np.tile([0, 0, 1, 5], (3, 1)))[3]
    assert [info.get("is_success") for info in infos] == [None, True, None]


def test_the_usual_bins_are_those_of_the_gymnasium_adapter() -> None:
    adapter = WorldVecEnv(Arena(ArenaSettings(num_envs=1, mouse_limit=2.0)))
    theirs = RegisteredEnv({"targets": {"goto": 1.0}}, mouse_limit=2.0)
    assert adapter.action_space == theirs.action_space
    np.testing.assert_array_equal(adapter._codec.bins, theirs._codec.bins)


def test_pictures_of_all_rows_come_with_the_render_mode() -> None:
    world = Arena(ArenaSettings(num_envs=2))
    world.set_scenario(Scenario({"goto": 1.0}))
    adapter = WorldVecEnv(world, render_mode="rgb_array")
    adapter.reset()
    for row, picture in enumerate(adapter.get_images()):
        np.testing.assert_array_equal(picture, world.draw(row))
    tiled = adapter.render()
    assert tiled is not None
    assert tiled.shape in ((480, 960, 3), (960, 480, 3))
    assert list(new_adapter().get_images()) == [None] * ROWS
    with pytest.raises(ConfigurationError, match="rgb_array"):
        WorldVecEnv(world, render_mode="human")


def test_rewards_are_fresh_every_step_and_scaled() -> None:
    plain, scaled = new_adapter(), new_adapter(reward_scale=0.5)
    for adapter in (plain, scaled):
        adapter.reset()
    actions = np.stack([plain.action_space.sample() for _ in range(ROWS)])
    first, kept = plain.step(actions)[1], scaled.step(actions)[1]
    np.testing.assert_allclose(kept, first * 0.5, rtol=1e-6)
    before = first.copy()
    plain.step(actions)
    np.testing.assert_array_equal(first, before)


def test_aim_bins_beyond_the_mouse_limit_are_refused() -> None:
    world = Arena(ArenaSettings(num_envs=1))
    with pytest.raises(ConfigurationError, match="aim_bins"):
        WorldVecEnv(world, (-6.0, 6.0))


def test_the_face_answers_as_a_vec_env_must() -> None:
    adapter = new_adapter()
    assert adapter.get_attr("render_mode") == [None] * ROWS
    assert adapter.get_attr("num_envs", [1, 3]) == [ROWS, ROWS]
    assert adapter.env_is_wrapped(object) == [False] * ROWS
    assert adapter.env_method("get_attr", "render_mode", indices=0) == [[None] * ROWS]
    adapter.set_attr("render_mode", "rgb_array")
    assert adapter.render_mode == "rgb_array"
    with pytest.raises(ValueError, match="whole batch"):
        adapter.set_attr("render_mode", None, indices=0)
    adapter.close()


def test_a_world_without_a_target_is_refused_before_anyone_learns_from_it() -> None:
    env = WorldVecEnv(Arena(ArenaSettings(num_envs=8)))
    with pytest.raises(ConfigurationError, match=r"no target.*make_vec_env.*are free, goto,"):
        PPO("MlpPolicy", env, n_steps=16, batch_size=64).learn(256)


def test_one_difficulty_is_a_weight_for_that_alone() -> None:
    one = make_vec_env("attack", num_envs=16, difficulty=3, seed=5)
    weights = make_vec_env({"attack": 2.0}, num_envs=16, difficulty=(0, 0, 7, 0, 0), seed=5)
    np.testing.assert_array_equal(one.reset(), weights.reset())
    other = make_vec_env("attack", num_envs=16, difficulty=4, seed=5)
    assert not np.array_equal(one.reset(), other.reset())


def test_another_world_is_ready_to_learn_as_well() -> None:
    env = make_vec_env(
        "task", num_envs=4, world="gymnasium", id="CartPole-v1", win={"return_above": 20}
    )
    PPO("MlpPolicy", env, n_steps=32, batch_size=64).learn(128)
    assert env.world.spec.targets.keys() == {"task"}


@pytest.mark.parametrize(
    ("target", "difficulty", "reason"),
    [
        ("gotoo", None, "no target 'gotoo'"),
        ("goto", 6, r"difficulty: must be 1 to 5 \(got 6\)"),
        ("free", 2, "free has no difficulties"),
    ],
)
def test_what_the_arena_has_not_is_refused(target: str, difficulty: int, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        make_vec_env(target, num_envs=2, difficulty=difficulty)


def test_the_example_of_the_arenas_page_learns(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("`make_vec_env` returns a `VecEnv`")
    block = re.search(r"```python\n(.*?)```", rest, re.DOTALL)
    assert block
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # evaluate_policy wants a Monitor, which is for single environments
        warnings.simplefilter("ignore", UserWarning)
        exec(block.group(1), names)
    model = names["model"]
    assert isinstance(model, PPO)
    assert model.ep_info_buffer
    assert "nan" not in capsys.readouterr().out


def test_running_rewards_are_those_of_vec_normalize_to_the_bit() -> None:
    ours = new_adapter(reward_scale=RunningRewardScale(ROWS, gamma=GAMMA))
    theirs = VecNormalize(new_adapter(), norm_obs=False, gamma=GAMMA)
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
