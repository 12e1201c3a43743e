"""Pictures of rows and of presets show what is there, where it is."""

import numpy as np
import pytest

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds import canvas as paint
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.draw import (
    ENEMY_RAY,
    HEAD,
    MARGIN,
    OUTER_WALL,
    SIDE,
    draw_preset_sheet,
    draw_row,
)
from aimbot_lab.worlds.arena.presets import load_presets
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.canvas import GAP, NAME

SETTINGS = ArenaSettings(num_envs=2)
SIZE = 1000
SCALE = SIZE / (47 + 2 * OUTER_WALL)  # pixels per metre
SHIPPED = load_presets()


def new_arena(target: str) -> Arena:
    arena = Arena(SETTINGS)
    arena.set_scenario(Scenario({target: 1.0}))
    arena.reset(11, np.zeros((2, len(arena.spec.observation_names)), np.float32))
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


def test_the_gun_points_along_the_view() -> None:
    arena = new_arena("goto")
    x, z = arena.state.position[0] = 20.0, 20.0
    for yaw, muzzle in [(0.0, (x, z + 0.8)), (np.pi / 2, (x + 0.8, z)), (np.pi, (x, z - 0.8))]:
        arena.state.yaw[0] = yaw
        assert sum(colour_at(picture_of(arena), *muzzle)) < 150


def test_obstacles_fire_base_and_outer_wall_are_where_the_state_says() -> None:
    arena = new_arena("attack")
    state = arena.state
    state.position[0] = 45.0, 2.0
    state.yaw[0] = np.pi / 2  # looks away
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
    state.position[0] = 2.0, 2.0
    state.yaw[0] = np.pi
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
    state.position[0] = 20.0, 20.0
    state.yaw[0] = 0.0
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


def test_a_ray_beyond_its_range_has_no_mark() -> None:
    arena = new_arena("free")
    state = arena.state
    state.position[0] = 20.0, 10.0
    state.enemy_count[0] = 0
    state.ray_distance[0, :] = 29.5
    for reach, has_mark in [(29.5, True), (29.0, False)]:
        state.parameters[0, arena.spec.parameters.index("rays.range")] = reach
        share = red_share(picture_of(arena), 20.0, 10.0 + reach)
        assert (share < -100) is has_mark


def test_the_caption_tells_target_difficulty_and_time() -> None:
    arena = new_arena("goto")
    before = picture_of(arena)[: int(OUTER_WALL * SCALE)]
    arena.state.decisions[0] += 10
    after = picture_of(arena)[: int(OUTER_WALL * SCALE)]
    changed = np.flatnonzero((before != after).any(axis=(0, 2)))
    assert changed.min() > SIZE / 2  # the time, on the right
    arena.state.difficulty[0] = 5 if arena.state.difficulty[0] != 5 else 1
    again = picture_of(arena)[: int(OUTER_WALL * SCALE)]
    changed = np.flatnonzero((again != after).any(axis=(0, 2)))
    assert changed.max() < SIZE / 2


# The sheet


def cell_colour(sheet: np.ndarray, place: tuple[int, int], x: float, z: float) -> tuple[int, ...]:
    """The colour at (x, z) of the block in a line and column of a sheet with cells of 200."""
    line, column = place
    scale = 200 / (10 + 2 * MARGIN)
    left = SIDE + column * (200 + GAP) + (x + MARGIN) * scale
    top = HEAD + line * (200 + NAME + GAP) + (10 + MARGIN - z) * scale
    return tuple(int(part) for part in sheet[int(top), int(left)])


def test_every_preset_has_its_place_on_the_sheet() -> None:
    sheet = np.asarray(draw_preset_sheet(SHIPPED, cell=200))
    kinds = sorted({(p.target != "goto", p.difficulty) for p in SHIPPED})
    shown = dict.fromkeys(kinds, 0)
    for preset in SHIPPED:
        kind = preset.target != "goto", preset.difficulty
        place = kinds.index(kind), shown[kind]
        shown[kind] += 1
        for min_x, min_z, max_x, max_z in preset.obstacles:
            middle = (min_x + max_x) / 2, (min_z + max_z) / 2
            assert cell_colour(sheet, place, *middle) == paint.OBSTACLE
        for enemy in preset.enemies:
            assert cell_colour(sheet, place, *enemy) == paint.ENEMY
