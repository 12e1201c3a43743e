"""Masks tell what the next decision would not do."""

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play

from aimbot_lab.foundation.world import Scenario


def masks_of(stage: Stage) -> np.ndarray:
    masks = np.zeros((stage.arena.num_envs, 8), np.bool_)
    stage.arena.action_masks(masks)
    return masks


def test_masks_tell_what_the_next_decision_would_not_do() -> None:
    stage = new_stage(ALL_TARGETS, num_envs=32)
    blocked = 0
    for actions in random_play(150, 32, seed=2):
        masks = masks_of(stage)
        kept = stage.arena.snapshot()
        np.testing.assert_array_equal(masks[:, 7], stage.buffers.observations[:, 7] == 1.0)
        for column in (1, 2, 4, 5):
            branch, index = divmod(column, 3)
            tried = np.zeros((32, 4), np.float32)
            tried[:, branch] = index
            before = stage.arena.state.position.copy()
            # A time-out may place the agent anew: only rows that go on are compared.
            stage.step(tried)
            going = ~stage.buffers.finished
            moved = np.linalg.norm(stage.arena.state.position - before, axis=1) > 1e-6
            np.testing.assert_array_equal(masks[going, column], moved[going])
            stage.arena.restore(kept)
        assert masks[:, [0, 3, 6]].all()
        blocked += int((~masks[:, [1, 2, 4, 5]]).sum())
        stage.step(actions)
    assert blocked > 0


@pytest.mark.parametrize(
    ("reach", "is_move"), [(0.0, False), (9e-7, False), (1.1e-6, True), (2.1e-6, True)]
)
def test_on_open_floor_a_walk_is_allowed_where_it_is_long_enough_to_count(
    reach: float, is_move: bool
) -> None:
    still = Scenario({"stay": 1.0}, parameters={"move_speed": reach / 0.1})
    masks = masks_of(new_stage(still, num_envs=3, start_position=(20.0, 20.0)))
    assert (masks[:, [1, 2, 4, 5]] == is_move).all()


def test_masks_in_reach_of_a_wall_are_those_of_the_walk() -> None:
    reach, low, high = 0.5, 0.5, 46.5
    for gap, may_go in ((0.0, False), (2e-6, True), (reach, True), (reach + 1e-9, True)):
        for place, blocked in ((low + gap, [2, 5]), (high - gap, [1, 4])):
            stage = new_stage(Scenario({"stay": 1.0}), num_envs=1, start_position=(place, place))
            masks = masks_of(stage)[0]
            assert (masks[blocked] == may_go).all()
            assert masks[[1, 2, 4, 5]].sum() == (4 if may_go else 2)


def test_masks_are_of_the_state_in_force_after_it_was_replaced() -> None:
    still = Scenario({"stay": 1.0})
    stage = new_stage(still, num_envs=2, start_position=(20.0, 20.0))
    masks_of(stage)
    state = stage.arena.state
    stage.arena.adopt(state._replace(gun_ticks=np.array([3, 0], state.gun_ticks.dtype)))
    assert masks_of(stage)[:, 7].tolist() == [False, True]
