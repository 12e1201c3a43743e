"""Pictures of the Gymnasium adapters."""

import numpy as np
import pytest
from played_envs import GOTO, STAND, play

from aimbot_lab.adapters.registered_envs import RegisteredEnv, RegisteredVectorEnv


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
