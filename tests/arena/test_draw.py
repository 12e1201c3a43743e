"""Pictures of rows and of presets show what is there, where it is."""

import numpy as np
import pytest

from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds import canvas as paint
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.draw import ENEMY_RAY, OUTER_WALL, draw_row
from aimbot_lab.worlds.arena.settings import ArenaSettings

SETTINGS = ArenaSettings(num_envs=2)
SIZE = 1000
SCALE = SIZE / (47 + 2 * OUTER_WALL)  # pixels per metre


def new_arena(target: str) -> Arena:
    arena = Arena(SETTINGS)
    arena.set_scenario(Scenario({target: 1.0}))
    arena.reset(11, step_buffers(arena).observations)
    return arena


def picture_of(arena: Arena, row: int = 0) -> np.ndarray:
    return draw_row(arena.state, row, arena.settings, size=SIZE)


def colour_at(picture: np.ndarray, x: float, z: float) -> tuple[int, ...]:
    """The colour at (x, z) metres on the floor."""
    column, line = (x + OUTER_WALL) * SCALE, (47 + OUTER_WALL - z) * SCALE
    return tuple(int(part) for part in picture[int(line), int(column)])


def red_share(picture: np.ndarray, x: float, z: float) -> int:
    """How much redder than blue the picture is at (x, z) metres."""
    red, _, blue = colour_at(picture, x, z)
    return red - blue


def test_a_picture_has_the_size_that_was_asked_for_and_is_the_same_every_time() -> None:
    arena = new_arena("goto")
    small = draw_row(arena.state, 0, SETTINGS)
    assert (small.shape, small.dtype) == ((480, 480, 3), np.uint8)
    np.testing.assert_array_equal(small, draw_row(arena.state, 0, SETTINGS))
    np.testing.assert_array_equal(small, arena.draw(0))
    assert not np.array_equal(small, arena.draw(1))


def test_x_is_to_the_right_and_z_is_up() -> None:
    arena = new_arena("goto")
    for x, z in [(10.0, 40.0), (40.0, 10.0)]:
        arena.state.position[0] = x, z
        assert colour_at(picture_of(arena), x, z) == paint.AGENT
        assert colour_at(picture_of(arena), z, x) != paint.AGENT


def test_obstacles_fire_base_and_outer_wall_are_where_the_state_says() -> None:
    arena = new_arena("attack")
    state = arena.state
    state.position[0], state.yaw[0] = (45.0, 2.0), np.pi / 2  # looks away
    state.obstacle_count[0] = 1
    state.obstacles[0, 0] = 10.0, 20.0, 12.0, 30.0
    state.fire_base[0] = 20.0, 35.0, 4.0
    picture = picture_of(arena)
    assert colour_at(picture, 11.0, 25.0) == paint.OBSTACLE
    assert colour_at(picture, 11.0, 31.0) != paint.OBSTACLE
    inside, outside = red_share(picture, 20.0, 36.5), red_share(picture, 20.0, 37.5)
    assert inside > 30 > outside
    assert colour_at(picture, 47.7, 25.0) == paint.WALL
    assert colour_at(picture, 25.0, -0.7) == paint.WALL


def test_a_living_enemy_is_a_disc_and_one_that_is_down_is_a_cross() -> None:
    arena = new_arena("free")
    state = arena.state
    state.position[0], state.yaw[0] = (2.0, 2.0), np.pi
    state.enemies[0, :2] = (30.0, 30.0), (30.0, 35.0)
    state.enemy_hits_left[0, :2] = 1, 0
    picture = picture_of(arena)
    assert colour_at(picture, 30.0, 30.3) == paint.ENEMY
    assert colour_at(picture, 30.0, 35.3) != paint.ENEMY
    assert red_share(picture, 30.3, 35.3) > 20


@pytest.mark.parametrize("enemy", [False, True])
def test_a_ray_ends_in_a_mark_of_what_it_hits(enemy: bool) -> None:
    arena = new_arena("free")
    state = arena.state
    state.enemy_count[0] = 0
    state.position[0], state.yaw[0] = (20.0, 20.0), 0.0
    middle = arena.settings.rays.count // 2
    state.ray_distance[0, :] = 5.0
    state.ray_distance[0, middle] = 10.0
    state.ray_hit[0, middle] = 0 if enemy else -1
    picture = picture_of(arena)
    share = red_share(picture, 20.0, 30.0)
    assert share > 100 if enemy else share < -100
    beside, along = red_share(picture, 20.5, 24.0), red_share(picture, 20.0, 24.0)
    assert along > beside if enemy else along < beside
    assert ENEMY_RAY[:3] == paint.ENEMY
