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
