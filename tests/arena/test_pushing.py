"""Walking against obstacles: of what is touched at once the deepest pushes first."""

import itertools
import math

import numpy as np
import pytest
from arena_stage import Stage, new_stage
from oracle_episode import STAY, Episode, rules_of
from oracle_walk import deepest, is_free, nearest_of_box, walked

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.core.state import PARAMETERS
from aimbot_lab.worlds.arena.settings import ArenaSettings

Box = tuple[float, float, float, float]
WALL: Box = (20.0, 20.0, 28.0, 21.0)
ROUNDING = 1e-9  # m


def cut(box: Box, places: tuple[float, ...]) -> list[Box]:
    """`box` cut across at these shares of its length."""
    ends = [box[0] + share * (box[2] - box[0]) for share in (0.0, *places, 1.0)]
    return [(low, box[1], high, box[3]) for low, high in itertools.pairwise(ends)]


def put(stage: Stage, rows: int, boxes: list[Box], enemies: list[tuple[float, float]]) -> None:
    """Stand boxes and enemies on the floor of a batch of Stay."""
    state = stage.arena.state
    state = state._replace(obstacles=np.zeros((rows, max(len(boxes), 1), 4)))
    stage.arena.state = state
    stage.arena._task = None
    state.obstacle_count[:], state.enemy_count[:] = len(boxes), len(enemies)
    for k, box in enumerate(boxes):
        state.obstacles[:, k] = box
    for k, enemy in enumerate(enemies):
        state.enemies[:, k] = enemy
        state.enemy_hits_left[:, k] = 100


def scene_of(boxes: list[Box], enemies: list[tuple[float, float]], *, pose) -> Episode:
    """The oracle's view of an agent at a pose [x, z, yaw] among these; the first enemy is down."""
    return Episode(
        target=STAY,
        difficulty=0,
        x=pose[0],
        z=pose[1],
        yaw=pose[2],
        fire_base=None,
        boxes=tuple(boxes),
        walls=(),
        enemies=tuple(enemies),
        hits_left=(0, *[100] * (len(enemies) - 1)),
    )


def test_where_two_things_are_touched_at_once_the_deeper_one_pushes_first() -> None:
    rng = np.random.default_rng(5)
    boxes = [*cut(WALL, (0.3, 0.5)), (25.6, 18.7, 26.0, 20.0), (23.0, 17.5, 23.5, 18.0)]
    enemies = [(24.5, 19.2), (22.0, 20.0), (24.6, 17.6)]
    settings = {"decision_period": 1, "move_speed": 10.0}
    rules = rules_of(ArenaSettings(**settings), PARAMETERS, {})
    spots = np.repeat([(22.95, 19.4), (25.0, 19.4), (26.5, 19.4)], 800, axis=0)
    near = spots + rng.uniform(-0.15, 0.15, spots.shape)
    places = np.concatenate([near, rng.uniform((20.0, 17.0), (27.5, 19.6), (1600, 2))])
    poses = np.column_stack([places, rng.uniform(-math.pi, math.pi, len(places))])
    scenes = [scene_of(boxes, enemies, pose=tuple(map(float, pose))) for pose in poses]
    free = [is_free(rules, scene, (scene.x, scene.z)) for scene in scenes]
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=len(poses), **settings)
    put(stage, len(poses), boxes, enemies)
    stage.arena.state.enemy_hits_left[:, 0] = 0
    stage.arena.state.position[:], stage.arena.state.yaw[:] = poses[:, :2], poses[:, 2]
    stage.repeat(1, 0, 0, 0)
    compared = pushed_by_two = 0
    for scene, place, starts_free in zip(scenes, stage.arena.state.position, free, strict=True):
        if starts_free:
            assert math.dist(walked(rules, scene, 1, 0), place) < ROUNDING, scene
            compared += math.dist((scene.x, scene.z), place) < 0.199
            pushed_by_two += in_two(rules, scene)
    assert compared > 200
    assert pushed_by_two > 50


def in_two(rules, scene: Episode) -> bool:
    """Whether the first small step of the scene's agent leads into two things at once."""
    x, z = (scene.x + 0.2 * math.sin(scene.yaw), scene.z + 0.2 * math.cos(scene.yaw))
    gaps = [math.dist((x, z), nearest_of_box((x, z), box)) for box in scene.boxes]
    gaps += [math.dist((x, z), enemy) - 0.5 for enemy in scene.enemies[1:]]
    return sum(gap < rules["agent_radius"] - 1e-6 for gap in gaps) > 1


AIM = (24.0, 19.6875)  # 5/16 m from each of these, in whole 16ths, so that rounding decides nothing
FACE: Box = (20.0, 20.0, 28.0, 21.0)
CORNER: Box = (24.1875, 19.9375, 28.0, 20.5)
DISC = (24.3125, 20.4375)  # 13/16 m away, where its radius is 8/16


@pytest.mark.parametrize(
    ("boxes", "enemies", "first"),
    [
        ([FACE, CORNER], [], "face"),
        ([CORNER, FACE], [], "corner"),
        ([FACE], [DISC], "face"),
        ([CORNER], [DISC], "corner"),
    ],
)
def test_of_things_that_are_equally_deep_an_obstacle_and_the_first_in_the_list_push_first(
    boxes: list[Box], enemies: list[tuple[float, float]], first: str
) -> None:
    tick = 1 / 64  # m
    settings = {"decision_period": 1, "fixed_timestep": 1 / 32, "move_speed": 0.5}
    start = (AIM[0], AIM[1] - tick)
    rules = rules_of(ArenaSettings(**settings), PARAMETERS, {})
    scene = scene_of(boxes, [(0.0, 0.0), *enemies], pose=(*start, 0.0))
    pushed = deepest(rules, scene, AIM)
    assert (pushed.depth, pushed.point) == (0.1875, (24.0, 20.0) if first == "face" else CORNER[:2])
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1, **settings)
    put(stage, 1, boxes, enemies)
    stage.arena.state.position[:], stage.arena.state.yaw[:] = start, 0.0
    stage.repeat(1, 0, 0, 0)
    place = stage.arena.state.position[0]
    assert math.dist(walked(rules, scene, 1, 0), place) < ROUNDING
    other = scene_of(boxes[::-1], [(0.0, 0.0)], pose=(*start, 0.0))
    assert len(boxes) == 1 or math.dist(walked(rules, other, 1, 0), place) > 0.1
