"""Bystanders, and room for many enemies."""

import numpy as np
import pytest
from arena_stage import Stage, gaussian, new_stage, random_play, ranges, row_digests, uniform

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.worlds import canvas as paint
from aimbot_lab.worlds.arena.arena import row_of, solo_arena
from aimbot_lab.worlds.arena.settings import ArenaSettings, most_bystanders, most_free_enemies


def stage_with(target: str, bystanders: object, rows: int = 64, **settings) -> Stage:
    scenario = Scenario({target: 1.0}, parameters={"bystanders": bystanders})
    return new_stage(scenario, num_envs=rows, **settings)


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


def free(count: ParameterValue) -> Scenario:
    return Scenario({"free": 1.0}, parameters={"free_enemies": count})


@pytest.mark.parametrize(
    ("count", "room"),
    [(1.0, 6), (uniform(1, 33), 33), (ranges((1, 50), (2, 3)), 50), (gaussian(20, 10), 100)],
)
def test_there_is_room_for_the_most_that_a_scenario_draws(count, room: int) -> None:
    stage = new_stage(free(count), num_envs=8, time_limit=0.1)
    for _ in range(20):
        stage.repeat(0, 0, 0, 0)
    assert stage.arena.state.enemies.shape[1] == room
    assert stage.arena.state.enemy_count.max() <= room


def test_the_crowd_that_surely_fits_fits() -> None:
    floor, radius = 20.0 + 7.0, 1.0
    most = most_free_enemies(floor, radius, 0.5)
    stage = new_stage(free(float(most)), num_envs=4, floor_size=floor, enemy_radius=radius)
    state = stage.arena.state
    for enemies in state.enemies:
        apart = np.hypot(*np.moveaxis(enemies[:, None] - enemies[None], -1, 0))
        assert apart[~np.eye(most, dtype=bool)].min() >= 2.0
    beside = most_bystanders(floor, radius, 0.5)
    for name, limit in (("free_enemies", most), ("bystanders", beside)):
        with pytest.raises(ValueError, match=f"{name} must be at most {limit}"):
            ArenaSettings(floor_size=floor, enemy_radius=radius, **{name: limit + 1})


def test_a_scenario_with_more_enemies_leaves_running_episodes_alone() -> None:
    play = random_play(60, 16)
    one, other = (new_stage(free(5.0), num_envs=16) for _ in range(2))
    assert row_digests(one, play[:30]) == row_digests(other, play[:30])
    other.arena.set_scenario(free(40.0))
    assert row_digests(one, play[30:]) == row_digests(other, play[30:])


def test_a_snapshot_with_more_enemies_is_restored_where_there_was_room_for_fewer() -> None:
    play, given = random_play(60, 8), {"num_envs": 8, "time_limit": 2.0}
    small = new_stage(Scenario({"goto": 1.0}), 5, **given)
    for count in (40.0, 2.0):
        other = new_stage(free(count), 3, **given)
        kept = other.arena.snapshot()
        wanted = row_digests(other, play)
        small.arena.restore(kept)
        assert row_digests(small, play) == wanted


@pytest.mark.parametrize("name", ["enemies", "enemy_is_target"])
def test_a_snapshot_whose_enemies_do_not_fit_together_is_refused(name: str) -> None:
    arena = new_stage(free(8.0), num_envs=2).arena
    kept = arena.snapshot()
    kept[name] = kept[name][:, :7].copy()
    with pytest.raises(MisuseError, match=r"room for|enemy_count"):
        arena.restore(kept)


def test_a_row_with_many_enemies_plays_on_alone() -> None:
    stage = new_stage(free(40.0), num_envs=3)
    play = random_play(20, 3)
    for actions in play[:5]:
        stage.step(actions)
    alone = solo_arena(stage.arena.settings, row_of(stage.arena.state, 1))
    buffers = new_step_buffers(1, len(alone.spec.observation_names))
    for actions in play[5:]:
        stage.step(actions)
        alone.step(actions[1:2], buffers)
        np.testing.assert_array_equal(buffers.observations[0], stage.buffers.observations[1])
