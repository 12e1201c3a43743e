"""The Gymnasium adapters over the arena: one row and the batch, episodes, pictures, actions."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from played_envs import GOTO, MIX, STAND, held_actions, play
from stable_baselines3.common.env_checker import check_env as check_with_sb3

from aimbot_lab.adapters.registered_envs import RegisteredEnv, RegisteredVectorEnv, register_ids
from aimbot_lab.foundation.errors import ActionError, ConfigurationError
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import default_type

register_ids()


IDS = sorted(default_type().gymnasium_ids)


@pytest.mark.parametrize("name", IDS)
def test_stable_baselines3s_checker_has_no_complaint(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, render_mode="rgb_array")
        check_with_sb3(env, warn=True, skip_render_check=False)


def test_a_single_environment_is_row_0_of_the_batch_with_the_same_seed() -> None:
    vector = RegisteredVectorEnv(5, MIX, time_limit=3.0)
    single = RegisteredEnv(MIX, time_limit=3.0)
    first, _ = vector.reset(seed=7)
    np.testing.assert_array_equal(single.reset(seed=7)[0], first[0])
    ended = 0
    for actions in held_actions(vector, 200):
        observations, rewards, terminated, _, infos = vector.step(actions)
        (told,) = play(single, [actions[0]])
        np.testing.assert_array_equal(told[0], observations[0])
        assert told[1:3] == (rewards[0], terminated[0])
        if terminated[0]:
            ended += 1
            np.testing.assert_array_equal(told[4], infos["final_obs"][0])
            for key, value in told[5].items():
                np.testing.assert_array_equal(value, infos["final_info"][key][0], err_msg=key)
    assert ended > 3


def test_infos_have_the_form_of_gymnasiums_own_vector_environments() -> None:
    ours = RegisteredVectorEnv(1, GOTO, time_limit=1.0)
    make = [lambda: RegisteredEnv(GOTO, time_limit=1.0)]
    theirs = gymnasium.vector.SyncVectorEnv(make, autoreset_mode=AutoresetMode.SAME_STEP)
    assert ours.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    for vector in (ours, theirs):
        vector.reset(seed=2)
    for _ in range(10):
        *mine, my_infos = ours.step(STAND[None])
        *other, other_infos = theirs.step(STAND[None])
        for one, two in zip(mine, other, strict=True):
            np.testing.assert_array_equal(one, two)
        assert set(my_infos) == set(other_infos)
    assert my_infos["_final_obs"].tolist() == [True]
    np.testing.assert_array_equal(my_infos["final_obs"][0], other_infos["final_obs"][0])
    for key, value in other_infos["final_info"].items():
        np.testing.assert_array_equal(my_infos["final_info"][key], value, err_msg=key)
        assert my_infos["final_info"][key].dtype == value.dtype, key


def test_gymnasiums_vector_wrappers_work() -> None:
    vector = DictInfoToList(RecordEpisodeStatistics(RegisteredVectorEnv(4, GOTO, time_limit=1.0)))
    vector.reset(seed=0)
    for _ in range(10):
        *_, infos = vector.step(np.tile(STAND, (4, 1)))
    assert [info["episode"]["l"] for info in infos] == [10] * 4
    for info in infos:
        returned = info["final_info"]["episode_return"]
        assert info["episode"]["r"] == pytest.approx(returned, rel=1e-6)


def test_a_time_out_is_a_terminated_loss_with_its_result() -> None:
    env = RegisteredEnv(
        {"targets": {"goto": 1.0}, "difficulty": {"goto": (0, 0, 0, 1, 0)}}, time_limit=1
    )
    env.reset(seed=4)
    *_, (_, _, terminated, truncated, last, info) = play(env, [STAND] * 10)
    assert (terminated, truncated) == (True, False)
    assert last[env.world.spec.observation_names.index("time_left")] == 0.0
    assert (info["won"], info["is_success"]) == (False, False)
    assert (info["target"], info["difficulty"], info["seconds"]) == ("goto", 4, 1.0)
    assert info["line"].startswith("Warning|Result|Lose|target=goto|difficulty=4|")
    terms = dict(zip(env.world.spec.reward_terms, info["reward_terms"], strict=True))
    assert terms["lose"] == -999.0
    assert info["episode_return"] == pytest.approx(sum(terms.values()))


def test_a_win_is_terminated_and_free_has_no_difficulty() -> None:
    env = RegisteredEnv({"targets": {"free": 1.0}}, free_enemies=1)
    env.reset(seed=0)
    state = env.world.state
    state.position[0], state.yaw[0], state.enemies[0, 0] = (10.0, 10.0), 0.0, (10.0, 15.0)
    _, reward, terminated, _, info = env.step(np.array([0, 0, 1, 5]))
    assert terminated
    assert reward > 999.0
    assert (info["won"], info["is_success"]) == (True, True)
    assert (info["target"], info["difficulty"], info["seconds"]) == ("free", 0, 0.1)


def test_a_reset_after_an_episode_keeps_the_place_and_one_with_a_seed_does_not() -> None:
    env = RegisteredEnv(GOTO, time_limit=1.0)
    names = env.world.spec.observation_names
    place = [names.index("agent_x"), names.index("agent_z")]
    first, _ = env.reset(seed=5)
    forward = np.array([1, 0, 0, 5])
    for _ in range(10):
        last, _, terminated, _, _ = env.step(forward)
    assert terminated
    following, _ = env.reset()
    np.testing.assert_array_equal(following[place], last[place])
    assert following[place].tolist() != first[place].tolist()
    np.testing.assert_array_equal(env.reset(seed=5)[0], first)


def test_unseeded_resets_in_the_middle_go_on_by_the_seed_before() -> None:
    for env in (RegisteredEnv(GOTO), RegisteredVectorEnv(3, GOTO)):
        first, _ = env.reset(seed=6)
        second, third = env.reset()[0], env.reset()[0]
        assert not np.array_equal(first, second)
        assert not np.array_equal(second, third)
        np.testing.assert_array_equal(env.reset(seed=6)[0], first)
        np.testing.assert_array_equal(env.reset()[0], second)
        np.testing.assert_array_equal(env.reset()[0], third)


def test_a_step_without_an_episode_and_reset_options_are_refused() -> None:
    for env in (RegisteredEnv(GOTO, time_limit=0.1), RegisteredVectorEnv(1, GOTO)):
        with pytest.raises(ResetNeeded):
            env.step(STAND)
        with pytest.raises(ConfigurationError, match="reset_mask"):
            env.reset(options={"reset_mask": np.ones(1, bool)})
    env = RegisteredEnv(GOTO, time_limit=0.1)
    env.reset()
    assert env.step(STAND)[2]
    with pytest.raises(ResetNeeded):
        env.step(STAND)


def test_nothing_that_was_handed_out_changes_later() -> None:
    vector = RegisteredVectorEnv(4, GOTO, time_limit=0.5)
    kept = [vector.reset(seed=0)[0]]
    copies = [kept[0].copy()]
    for actions in held_actions(vector, 20):
        observations, rewards, terminated, truncated, infos = vector.step(actions)
        last = [seen for seen in infos.get("final_obs", []) if seen is not None]
        for array in (observations, rewards, terminated, truncated, *last):
            kept.append(array)
            copies.append(array.copy())
    for array, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_frames_are_pictures_of_the_rows() -> None:
    vector = RegisteredVectorEnv(3, GOTO, render_mode="rgb_array")
    vector.reset(seed=0)
    frames = vector.render()
    assert [(frame.shape, frame.dtype) for frame in frames] == [((480, 480, 3), np.uint8)] * 3
    assert not np.array_equal(frames[0], frames[1])
    assert vector.metadata["render_fps"] == 10.0
    assert RegisteredEnv(GOTO, decision_period=1).metadata["render_fps"] == 50.0


def test_the_frame_after_the_end_shows_how_the_episode_ended() -> None:
    env = RegisteredEnv(GOTO, render_mode="rgb_array", time_limit=0.5)
    twin = RegisteredEnv(GOTO, render_mode="rgb_array", time_limit=0.5)
    for one in (env, twin):
        one.reset(seed=3)
        play(one, [STAND] * 4)
    assert env.step(STAND)[2]
    ending = env.render()
    twin.world.state.decisions[:] = 5  # for an agent that stands still only time has passed
    np.testing.assert_array_equal(ending, twin.render())
    env.reset()
    assert not np.array_equal(ending, env.render())


def test_without_a_render_mode_there_is_a_warning_and_no_frame() -> None:
    for env in (RegisteredEnv(GOTO), RegisteredVectorEnv(2, GOTO)):
        env.reset(seed=0)
        with pytest.warns(UserWarning, match="rgb_array"):
            assert env.render() is None


def test_the_hybrid_action_is_the_worlds_own() -> None:
    bins, hybrid = RegisteredVectorEnv(6, GOTO), RegisteredVectorEnv(6, GOTO, action="hybrid")
    for vector in (bins, hybrid):
        vector.reset(seed=1)
    values = np.array(TrainSettings().aim_bins, np.float32)
    for actions in held_actions(bins, 40):
        ours = bins.step(actions)
        branches, mouse = actions[:, :3], values[actions[:, 3:]]
        same = hybrid.step({"branches": branches, "mouse": mouse})
        for one, two in zip(ours[:4], same[:4], strict=True):
            np.testing.assert_array_equal(one, two)
    hybrid.action_space.seed(0)
    hybrid.step(hybrid.action_space.sample())


@pytest.mark.parametrize("bad", [-1, 11, np.nan])
def test_an_aim_bin_that_does_not_exist_is_refused_with_its_row(bad: float) -> None:
    vector = RegisteredVectorEnv(3, GOTO)
    vector.reset(seed=0)
    before = vector.world.snapshot()
    actions = np.tile(STAND, (3, 1)).astype(float)
    actions[1, 3] = bad
    with pytest.raises(ActionError, match=r"environment 1: aim bin is .*0 to 10"):
        vector.step(actions)
    for name, array in vector.world.snapshot().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
