"""Enemies beside a target block: seen and hit, and no targets."""

import numpy as np
import pytest
from arena_stage import Stage, new_stage

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds import canvas as paint

BLOCK = 10.0  # m


def stage_with(target: str, bystanders: object, rows: int = 64, **settings) -> Stage:
    scenario = Scenario({target: 1.0}, parameters={"bystanders": bystanders})
    return new_stage(scenario, num_envs=rows, **settings)


@pytest.mark.parametrize("target", ["goto", "attack"])
def test_bystanders_stand_apart_and_leave_a_way_round_the_block(target: str) -> None:
    state = stage_with(target, 9.0).arena.state
    for row in range(64):
        count = state.enemy_count[row]
        places = state.enemies[row, count - 9 : count]
        gap = np.maximum(
            np.maximum(state.block[row] - places, places - state.block[row] - BLOCK), 0
        )
        assert np.hypot(*gap.T).min() >= 0.5 + 2 * 0.5
        assert places.min() >= 0.5
        assert places.max() <= 46.5
        discs = np.concatenate([state.position[row : row + 1], state.enemies[row, :count]])
        apart = np.hypot(*np.moveaxis(discs[:, None] - discs[None], -1, 0))
        assert apart[~np.eye(len(discs), dtype=bool)].min() >= 1.0
        assert not state.enemy_is_target[row, count - 9 : count].any()
        assert state.enemy_is_target[row, : count - 9].all()


def test_an_attack_is_won_although_bystanders_live() -> None:
    stage = stage_with("attack", 5.0)
    state = stage.arena.state
    state.enemy_hits_left[state.enemy_is_target] = 0
    ended = stage.repeat(0, 0, 0, 0)
    assert ended.won.tolist() == [True] * 64


def test_without_bystanders_blocks_and_streams_are_as_ever() -> None:
    plain = new_stage(Scenario({"attack": 1.0}), num_envs=64).arena.state
    none = stage_with("attack", 0.0).arena.state
    for ours, theirs in zip(plain, none, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_picture_tells_bystanders_from_targets() -> None:
    stage = stage_with("attack", 1.0, rows=1)
    state = stage.arena.state
    state.obstacle_count[0] = 0
    state.enemy_count[0] = 2
    state.enemies[0, :2] = (10.0, 40.0), (40.0, 40.0)
    state.enemy_is_target[0, :2] = True, False
    picture = stage.arena.draw(0)
    scale = 480 / 50.0
    colours = [
        tuple(picture[int((48.5 - z) * scale), int((x + 1.5) * scale)])
        for x, z in state.enemies[0, :2]
    ]
    assert colours == [paint.ENEMY, paint.BYSTANDER]
