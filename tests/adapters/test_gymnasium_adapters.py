"""The Gymnasium adapters over the arena, one row and the whole batch."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as check_with_gymnasium
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from played_envs import GOTO, MIX, STAND, held_actions, play
from stable_baselines3.common.env_checker import check_env as check_with_sb3

from aimbot_lab.adapters.registered_envs import RegisteredEnv, RegisteredVectorEnv, register_ids
from aimbot_lab.worlds.registry import default_type

register_ids()

IDS = sorted(default_type().gymnasium_ids)


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_checker_has_no_complaint(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_with_gymnasium(gymnasium.make(name).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_stable_baselines3s_checker_has_no_complaint(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, render_mode="rgb_array")
        check_with_sb3(env, warn=True, skip_render_check=False)


@pytest.mark.parametrize("tags", ["label", "one_hot"])
def test_the_hybrid_action_passes_gymnasiums_checker(tags: str) -> None:
    # The mouse limit of 1 makes the box normalised, which the checker recommends.
    options = {"action": "hybrid", "mouse_limit": 1.0, "rays": {"tags": tags}}
    check_with_gymnasium(gymnasium.make("aimbot_lab/Mix-v0", **options).unwrapped)


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
