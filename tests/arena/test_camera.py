"""The picture that an agent sees: laws, and what it shows where the scene is known."""

import numpy as np
import pytest
from arena_stage import Stage, new_stage, random_play, row_digests

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.core import observation as seen_as
from aimbot_lab.worlds.arena.core.observation import FAINT, FLOOR, HORIZON, OBSTACLE, OUTER_WALL
from aimbot_lab.worlds.arena.core.state import BODY_HEIGHT, EYE_HEIGHT, WALL_HEIGHT
from aimbot_lab.worlds.arena.core.step import cast_all_rays, observe_all
from aimbot_lab.worlds.arena.settings import CameraSettings, ObservationSettings
from aimbot_lab.worlds.arena.spec import picture_columns

ROWS, SIDE = 32, 47.0
WIDTH, HEIGHT = 15, 10
SOLID = Scenario({"goto": 1.0, "attack": 1.0, "free": 0.5})
LEVEL = 1.0 / 255.0


def filmed(*, grey: bool = False, scenario: Scenario = SOLID, **settings) -> Stage:
    """An arena with a camera after some play."""
    camera = CameraSettings(width=WIDTH, height=HEIGHT, grey=grey)
    given = {"num_envs": ROWS, "observation": ObservationSettings(camera=camera), **settings}
    stage = new_stage(scenario, 5, **given)
    for actions in random_play(20, ROWS, seed=4):
        stage.step(actions)
    return stage


def pictures(stage: Stage) -> np.ndarray:
    """[B, H, W, C] of the present state, rays cast anew."""
    arena, state = stage.arena, stage.arena.state
    state.ahead[:, 0], state.ahead[:, 1] = np.sin(state.yaw), np.cos(state.yaw)
    seen = np.zeros_like(arena.frames.buffers.observations)
    cast_all_rays(state, arena._workspaces[0].scratch, (0, ROWS))
    observe_all(state, arena._tables, seen, (0, ROWS))
    return of(stage, seen)


def of(stage: Stage, observations: np.ndarray) -> np.ndarray:
    """The pictures [B, H, W, C], from 0 to 1, in `observations` as kernels write them."""
    return observations[:, picture_columns(stage.arena.settings)["camera"]]


def moved(stage: Stage, places, yaw) -> np.ndarray:
    """Pictures where all places went through `places`, and every yaw through `yaw`."""
    state = stage.arena.state
    for array in (state.position, state.enemies):
        array[:] = places(array)
    state.fire_base[:, :2] = places(state.fire_base[:, :2])
    ends = np.stack([places(state.obstacles[..., :2]), places(state.obstacles[..., 2:])])
    state.obstacles[:] = np.concatenate([ends.min(axis=0), ends.max(axis=0)], axis=-1)
    state.yaw[:] = yaw(state.yaw)
    return pictures(stage)


def assert_alike(one: np.ndarray, other: np.ndarray) -> None:
    """The same but for a level of rounding, and for few pixels at an edge."""
    unlike = np.abs(one - other).max(axis=-1) > 1.5 * LEVEL
    assert unlike.mean() < 2e-3
    assert one.std() > 0.05


def test_a_mirrored_arena_gives_the_mirrored_picture() -> None:
    stage = filmed()
    before = pictures(stage)
    mirrored = moved(
        stage, lambda at: np.stack([SIDE - at[..., 0], at[..., 1]], axis=-1), lambda yaw: -yaw
    )
    assert_alike(mirrored, before[:, :, ::-1])
    assert np.abs(mirrored - before).max() > 0.2


def test_the_middle_column_shows_what_the_middle_ray_meets() -> None:
    stage = filmed(scenario=Scenario({"free": 1.0}, parameters={"free_enemies": 60.0}))
    state, shown = stage.arena.state, pictures(stage)
    hits = 0
    for row in range(ROWS):
        meets, ahead = int(state.ray_hit[row, 9]), float(state.ray_distance[row, 9])
        for line, seen in enumerate(shown[row, :, WIDTH // 2] * 255.0):
            shade = _pixel(line, ahead, enemy=meets >= 0)
            if shade is not None:  # what stands behind an enemy is not known by the ray
                np.testing.assert_allclose(seen, shade, atol=0.51, err_msg=f"{line}")
        hits += meets >= 0
    assert 0 < hits < ROWS


def _pixel(line: int, ahead: float, *, enemy: bool) -> tuple[float, ...] | None:
    """Red, green and blue of the middle pixel of `line`, `ahead` metres from what a ray met."""
    focal = WIDTH / 2  # pixels: 90 degrees from edge to edge
    below = (line + 0.5 - HORIZON * HEIGHT) / focal  # slope of the view
    height = EYE_HEIGHT - below * ahead  # m above the floor, at the hit
    if height < 0.0:
        return FLOOR
    if height > (BODY_HEIGHT if enemy else WALL_HEIGHT):
        return None if enemy else seen_as.CEILING
    return tuple(part * FAINT / (FAINT + ahead) for part in (seen_as.FOE if enemy else OUTER_WALL))


def test_every_column_is_as_far_as_a_ray_at_its_angle() -> None:
    stage = filmed(scenario=Scenario({"goto": 1.0}))
    state, shown = stage.arena.state, pictures(stage)
    line = int(HORIZON * HEIGHT)  # just below the horizon: walls up to 22 m away stand there
    compared = 0
    for column in range(WIDTH):
        angle = np.arctan((2 * column + 1 - WIDTH) / WIDTH)
        yaw = state.yaw.copy()
        state.yaw[:] = yaw + angle
        pictures(stage)  # casts the middle ray along the column
        ahead = state.ray_distance[:, 9].astype(float) * np.cos(angle)
        state.yaw[:] = yaw
        for row in range(ROWS):
            if ahead[row] > 20.0:
                continue
            kinds = np.array([OUTER_WALL, OBSTACLE]) * FAINT / (FAINT + ahead[row]) / 255.0
            assert np.abs(shown[row, line, column] - kinds).max(axis=1).min() < LEVEL
            compared += 1
    assert compared > 100


def test_the_fire_base_is_brightest_in_its_centre_and_where_it_is() -> None:
    stage = filmed(scenario=Scenario({"goto": 1.0}))
    state = stage.arena.state
    state.obstacle_count[:] = 0
    state.position[:], state.yaw[:] = (20.0, 10.0), 0.0
    state.fire_base[:] = 20.0, 10.0 + EYE_HEIGHT * 5.0, 10.0  # 7.5 m ahead
    shown = pictures(stage)[0] * 255.0
    line = int(HORIZON * HEIGHT) + 1  # slope 1.5 / 7.5 = 0.2: 7.5 m ahead
    np.testing.assert_allclose(shown[line, WIDTH // 2], seen_as.BASE, atol=0.51)
    assert (shown[line, WIDTH // 2] >= shown[line]).all()
    state.fire_base[:] = 0.0
    bare = pictures(stage)[0] * 255.0
    np.testing.assert_allclose(bare[line, WIDTH // 2], FLOOR, atol=0.51)


def test_grey_is_the_luminance_of_the_colours_and_shades_are_whole_levels() -> None:
    coloured, grey = pictures(filmed()), pictures(filmed(grey=True))
    np.testing.assert_allclose(grey[..., 0], coloured @ np.array(seen_as.GREY), atol=1.1 * LEVEL)
    np.testing.assert_allclose(coloured * 255.0, np.rint(coloured * 255.0), atol=1e-4)


def test_steps_show_the_picture_in_8_bits_and_the_last_one_of_an_episode() -> None:
    stage = filmed(time_limit=2.0)
    wide, ended = stage.arena.frames.buffers, 0
    for actions in random_play(40, ROWS, seed=9):
        stage.step(actions)
        seen, last = stage.buffers.observations, stage.buffers.final_observations
        over = stage.buffers.finished
        shown = of(stage, wide.observations)
        np.testing.assert_array_equal(seen["camera"], np.rint(255 * shown))
        np.testing.assert_array_equal(seen["columns"][:, :13], wide.observations[:, :13])
        final = of(stage, wide.final_observations)[over]
        np.testing.assert_array_equal(last["camera"][over], np.rint(255 * final))
        ended += over.sum()
    assert ended > 0
    assert seen["camera"].dtype == np.uint8
    assert seen.nbytes == ROWS * stage.arena.spec.observation_dtype.itemsize


def test_a_hidden_fire_base_is_not_in_the_picture() -> None:
    settings = {"recall_seconds": 1.0, "scenario": Scenario({"goto": 1.0})}
    hidden, shown = filmed(**settings), filmed(scenario=settings["scenario"])
    for stage in (hidden, shown):
        state = stage.arena.state
        state.obstacle_count[:], state.yaw[:] = 0, 0.0
        state.position[:] = state.fire_base[:, :2] - (0.0, 7.5)
    bright = [(pictures(stage)[..., 1] > 0.7).any(axis=(1, 2)) for stage in (hidden, shown)]
    assert not bright[0].any()
    assert bright[1].all()


@pytest.mark.parametrize("stacked", [1, 2])
def test_rows_threads_and_snapshots_make_no_difference(stacked: int) -> None:
    camera = ObservationSettings(camera=CameraSettings(width=8, height=6), rays="ml-agents")
    settings = {"num_envs": 128, "observation": camera, "stacked_vectors": stacked}
    play = random_play(40, 128, seed=1)
    one = row_digests(new_stage(SOLID, 7, **settings), play)
    assert row_digests(new_stage(SOLID, 7, threads=2, **settings), play) == one
    stage, other = new_stage(SOLID, 7, **settings), new_stage(SOLID, 8, **settings)
    for actions in play[:20]:
        stage.step(actions)
    other.arena.restore(stage.arena.snapshot())
    assert row_digests(other, play[20:]) == row_digests(stage, play[20:])
