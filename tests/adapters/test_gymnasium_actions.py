"""Actions of the Gymnasium adapters, and what is refused of them."""

import numpy as np
import pytest
from played_envs import GOTO, STAND, held_actions

from aimbot_lab.adapters.registered_envs import RegisteredEnv, RegisteredVectorEnv
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.training.settings import TrainSettings


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


def test_the_default_bins_are_those_of_training() -> None:
    env = RegisteredEnv(GOTO)
    np.testing.assert_array_equal(env._codec.bins[0], np.float32(TrainSettings().aim_bins))


@pytest.mark.parametrize("bad", [-1, 11, 0.5, np.nan])
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


def test_a_branch_that_does_not_exist_or_nan_is_refused_with_its_row() -> None:
    vector = RegisteredVectorEnv(3, GOTO, action="hybrid")
    vector.reset(seed=0)
    branches, mouse = np.zeros((3, 3)), np.zeros((3, 1))
    branches[2, 1] = 3
    with pytest.raises(ActionError, match="environment 2: horizontal move is 3"):
        vector.step({"branches": branches, "mouse": mouse})
    mouse[0, 0] = np.nan
    with pytest.raises(ActionError, match="environment 0: mouse is nan"):
        vector.step({"branches": np.zeros((3, 3)), "mouse": mouse})


def test_actions_of_a_wrong_shape_are_refused() -> None:
    vector = RegisteredVectorEnv(3, GOTO)
    vector.reset(seed=0)
    for shape in [(4,), (1, 4), (3, 5), (4, 3)]:
        with pytest.raises(ActionError, match="shape"):
            vector.step(np.zeros(shape, int))


def test_a_finite_mouse_of_any_size_is_clipped_and_an_endless_one_refused() -> None:
    turned = []
    for mouse in (1e300, 5.0):
        env = RegisteredEnv(GOTO, action="hybrid")
        env.reset(seed=0)
        env.step({"branches": np.zeros(3, int), "mouse": np.array([mouse])})
        turned.append(env.world.state.yaw[0])
    assert turned[0] == turned[1]
    with pytest.raises(ActionError, match="mouse is inf"):
        env.step({"branches": np.zeros(3, int), "mouse": np.array([np.inf])})
