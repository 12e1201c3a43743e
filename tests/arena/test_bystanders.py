"""Enemies beside a target block: seen and hit, and no targets."""

import numpy as np
import pytest
from arena_stage import Stage, new_stage

from aimbot_lab.foundation.settings import Uniform, UniformParameters
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds import canvas as paint

BLOCK = 10.0  # m


def stage_with(target: str, bystanders: object, rows: int = 64, **settings) -> Stage:
    scenario = Scenario({target: 1.0}, parameters={"bystanders": bystanders})
    return new_stage(scenario, num_envs=rows, **settings)


def term(stage: Stage, name: str) -> np.ndarray:
    return stage.arena.state.terms[:, stage.arena.spec.reward_terms.index(name)]


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


def test_a_hit_bystander_is_a_non_target_hit_and_decides_nothing() -> None:
    for target in ("goto", "attack"):
        stage = stage_with(target, 1.0, gun_range=60.0)
        state, last = stage.arena.state, stage.arena.state.enemy_count - 1
        state.obstacle_count[:] = 0
        state.position[:], state.yaw[:] = (3.0, 3.0), 0.0
        state.enemies[np.arange(64), last] = 3.0, 6.0
        ended = stage.repeat(0, 0, 1, 0)
        assert not ended
        assert (state.enemy_hits_left[np.arange(64), last] == 0).all()
        assert (term(stage, "non_target_hit") == 3.0).all()
        assert not term(stage, "target_hit").any()


def test_rays_see_a_bystander() -> None:
    stage = stage_with("goto", 1.0)
    state = stage.arena.state
    state.obstacle_count[:] = 0
    state.position[:], state.yaw[:], state.enemies[:, 0] = (3.0, 3.0), 0.0, (3.0, 6.0)
    stage.repeat(0, 0, 0, 0)
    assert (stage.buffers.observations[:, 13 + 9] == 1.0).all()
    np.testing.assert_allclose(stage.buffers.observations[:, 13 + 19 + 9], 2.5)


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


def test_a_sampler_draws_their_number_for_every_episode() -> None:
    drawn = Uniform(sampler_parameters=UniformParameters(min_value=0, max_value=4))
    state = stage_with("goto", drawn, rows=500).arena.state
    counts = np.bincount(state.enemy_count, minlength=5)
    assert counts.size == 5
    assert counts.min() > 60


def test_free_and_stay_have_none() -> None:
    assert (stage_with("free", 5.0).arena.state.enemy_count == 6).all()
    assert (stage_with("stay", 5.0).arena.state.enemy_count == 0).all()


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
