"""The action spaces that stable-baselines3 is shown."""

import numpy as np
import pytest
from gymnasium import spaces
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings

ROWS = 8
BINS = (-5.0, -1.0, 0.0, 1.0, 5.0)


def new_adapter(actions: str) -> WorldVecEnv:
    world = Arena(ArenaSettings(num_envs=ROWS, time_limit=2.0))
    world.set_scenario(Scenario({"attack": 1.0}))
    adapter = WorldVecEnv(world, BINS, actions=actions, seed=3)
    adapter.reset()
    return adapter


def test_a_flat_choice_is_every_combination_once() -> None:
    adapter = new_adapter("flat")
    assert adapter.action_space == spaces.Discrete(3 * 3 * 2 * 5)
    seen = set()
    for start in range(0, 90, ROWS):
        adapter.step_async(np.minimum(np.arange(start, start + ROWS), 89))
        seen |= {tuple(row) for row in adapter._actions.tolist()}
    assert len(seen) == 90
    adapter.step_async(np.full(ROWS, 89))
    assert adapter._actions[0].tolist() == [2.0, 2.0, 1.0, 5.0]
    with pytest.raises(ActionError, match="environment 0: action is 90; allowed is one of 0 to 89"):
        adapter.step_async(np.full(ROWS, 90))


def test_hybrid_columns_are_the_worlds_own() -> None:
    adapter = new_adapter("hybrid")
    assert adapter.action_space.low.tolist() == [0, 0, 0, -5]
    assert adapter.action_space.high.tolist() == [2, 2, 1, 5]
    actions = np.tile(np.float32([2, 1, 1, -0.37]), (ROWS, 1))
    adapter.step_async(actions)
    np.testing.assert_array_equal(adapter._actions, actions)


@pytest.mark.parametrize(("actions", "width"), [("bins", 13), ("flat", 90), ("hybrid", 8)])
def test_masks_are_rows_of_one_array(actions: str, width: int) -> None:
    adapter = new_adapter(actions)
    assert is_masking_supported(adapter)
    masks = get_action_masks(adapter)
    assert masks.shape == (ROWS, width)
    rows = adapter.env_method("action_masks", indices=[5, 2])
    np.testing.assert_array_equal(rows, masks[[5, 2]])


def test_masks_follow_the_gun_and_bins_stay_free() -> None:
    adapter = new_adapter("bins")
    assert get_action_masks(adapter)[:, 7].all()
    adapter.step(np.tile([0, 0, 1, 2], (ROWS, 1)))
    masks = get_action_masks(adapter)
    assert not masks[:, 7].any()
    assert masks[:, 8:].all()


def test_a_flat_mask_is_the_conjunction_of_its_parts() -> None:
    flat, bins = new_adapter("flat"), new_adapter("bins")
    flat.step(np.full(ROWS, 7))
    bins.step(np.tile([0, 0, 1, 2], (ROWS, 1)))
    parts, whole = get_action_masks(bins), get_action_masks(flat)
    np.testing.assert_array_equal(flat._actions, bins._actions)
    for choice in range(90):
        v, h, attack, aim = np.unravel_index(choice, (3, 3, 2, 5))
        wanted = parts[:, v] & parts[:, 3 + h] & parts[:, 6 + attack] & parts[:, 8 + aim]
        np.testing.assert_array_equal(whole[:, choice], wanted)
