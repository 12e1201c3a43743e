"""The laws of the duel: swap, zero sum, the same bits, discs, reflection."""

import numpy as np
import pytest
from duel_stage import Crowd, begun, played, scenario, swapped, swapped_seats

from aimbot_lab.worlds.duel.core.state import EXTENT, HIT, MIDDLE_X, RADIUS, DuelState
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.layouts import FLOOR_SIZE
from aimbot_lab.worlds.duel.settings import DuelSettings

LEVELS = (1, 5)
CLOSE = 0.3  # m: two that walk into each other stop at most three ticks apart
BY_SEAT = ("observations", "rewards", "finished", "final_observations")
UNEQUAL = DuelSettings(
    num_envs=48,
    time_limit=6.0,
    start="free",
    mirrored_loadouts=False,
    loadouts={
        "light": {"move_speed": 8.0, "health": 1.0, "agent_radius": 0.3},
        "heavy": {"move_speed": 3.0, "damage": 2.0, "decision_every": 2.0, "gun_cooldown": 0.1},
    },
    observed_parameters=("health", "move_speed"),
)


@pytest.mark.parametrize("level", LEVELS)
def test_exchanging_home_and_away_exchanges_all_that_comes_out_bit_for_bit(level: int) -> None:
    duel, buffers = begun(UNEQUAL, scenario(level))
    other, others = begun(UNEQUAL, scenario(level))
    other.restore(swapped(duel.snapshot(), duel.num_envs))
    act, met = Crowd(duel), 0
    for _ in range(200):
        actions = act(buffers.observations)
        batch = duel.step(actions, buffers)
        mirror = other.step(swapped_seats(actions), others)
        for name in BY_SEAT:
            one, two = getattr(buffers, name), swapped_seats(getattr(others, name))
            np.testing.assert_array_equal(one, two, err_msg=name)
        np.testing.assert_array_equal(batch.outcome, swapped_seats(mirror.outcome))
        np.testing.assert_array_equal(batch.terms, swapped_seats(mirror.terms))
        met += int((duel.state.shot == HIT).sum())
    assert met > 5
    ours, theirs = duel.snapshot(), swapped(other.snapshot(), duel.num_envs)
    for name in ours.keys() - {"seats.order"}:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@pytest.mark.parametrize("level", LEVELS)
def test_rewards_and_terms_of_a_match_are_exact_negatives(level: int) -> None:
    duel, buffers = begun(UNEQUAL, scenario(level, rewards__move_penalty=-0.3))
    for step in played(duel, buffers, 200):
        home, away = np.split(step["rewards"], 2)
        np.testing.assert_array_equal(home, -away)
        home, away = np.split(duel.state.terms, 2)
        np.testing.assert_array_equal(home, -away)
        home, away = np.split(step["terms"], 2)
        np.testing.assert_array_equal(home, -away)
        np.testing.assert_array_equal(*np.split(step["finished"], 2))


@pytest.mark.parametrize(("matches", "threads"), [(1, 1), (512, 2)])
def test_a_match_is_the_same_whatever_the_number_of_matches_and_threads(
    matches: int, threads: int
) -> None:
    few = min(matches, 7)
    alone, buffers = begun(DuelSettings(num_envs=7, time_limit=4.0), scenario())
    settings = DuelSettings(num_envs=matches, time_limit=4.0, threads=threads)
    duel, others = begun(settings, scenario())
    for one, two in zip(played(alone, buffers, 60), played(duel, others, 60), strict=True):
        for name in BY_SEAT:
            ours, theirs = (by_agent(step[name])[:, :few] for step in (one, two))
            np.testing.assert_array_equal(ours, theirs, err_msg=name)


def by_agent(array: np.ndarray) -> np.ndarray:
    return array.reshape(2, -1, *array.shape[1:])


@pytest.mark.parametrize("level", LEVELS)
def test_discs_never_overlap_and_stay_on_the_free_floor(level: int) -> None:
    duel, buffers = begun(UNEQUAL, scenario(level, away__move_speed=12.0))
    touched = 0
    for _ in played(duel, buffers, 200):
        state, matches = duel.state, duel.num_envs
        radius = state.traits[:, RADIUS]
        home, away = state.seats.position[:matches], FLOOR_SIZE - state.seats.position[matches:]
        gaps = np.hypot(*(home - away).T) - radius[:matches] - radius[matches:]
        assert gaps.min() > -1e-8
        touched += int((gaps < CLOSE).sum())
        edge = np.minimum(state.seats.position, FLOOR_SIZE - state.seats.position).min(axis=1)
        assert (edge >= radius - 1e-9).all()
        boxes = state.seats.obstacles
        place = state.seats.position[:, None]
        beyond = np.maximum(np.maximum(boxes[..., :2] - place, place - boxes[..., 2:]), 0.0)
        there = np.arange(boxes.shape[1]) < state.seats.obstacle_count[:, None]
        away_from = np.where(there, np.hypot(beyond[..., 0], beyond[..., 1]), np.inf)
        assert (away_from.min(axis=1) >= radius - 1e-8).all()
    assert touched > 0


@pytest.mark.parametrize("level", LEVELS)
def test_a_layout_mirrored_left_to_right_gives_mirrored_rays_and_poses(level: int) -> None:
    settings = DuelSettings(num_envs=24, time_limit=60.0)
    duel, buffers = begun(settings, scenario(level))
    mirror, others = begun(settings, scenario(level))
    mirror_halls(mirror)
    act, differing, compared = Crowd(duel), 0, 0
    rays = settings.rays.count
    for _ in range(60):
        for name, array in mirror_image(duel.state).items():
            getattr(mirror.state.seats, name)[...] = array
        for name in ("health", "held"):
            getattr(mirror.state, name)[...] = getattr(duel.state, name)
        actions = act(buffers.observations)
        turned = actions.copy()
        turned[:, 1] = np.array([0, 2, 1])[actions[:, 1].astype(int)]
        turned[:, 3] *= -1
        batch, image = duel.step(actions, buffers), mirror.step(turned, others)
        running = ~buffers.finished
        np.testing.assert_array_equal(buffers.finished, others.finished)
        np.testing.assert_array_equal(batch.outcome, image.outcome)
        ours, theirs = duel.state.seats.position[running], mirror.state.seats.position[running]
        np.testing.assert_allclose(ours[:, 1], theirs[:, 1], atol=1e-7)
        np.testing.assert_allclose(ours[:, 0], FLOOR_SIZE - theirs[:, 0], atol=1e-7)
        seen = duel.state.seats.ray_distance[running, :rays]
        mirrored = mirror.state.seats.ray_distance[running, :rays][:, ::-1]
        differing += int((np.abs(seen - mirrored) > 1e-3).sum())
        compared += seen.size
    assert differing <= 1e-4 * compared


def mirror_halls(duel: Duel) -> None:
    """Make every hall of `duel` what a looking glass on the left wall shows."""
    layouts = duel.tables.layouts
    for layout, count in enumerate(layouts.box_count):
        boxes, extents = layouts.boxes[layout, :count], layouts.extents[EXTENT * layout :]
        boxes[:, [0, 2]] = FLOOR_SIZE - boxes[:, [2, 0]]
        extents[MIDDLE_X, :count] = FLOOR_SIZE - extents[MIDDLE_X, :count]


def mirror_image(state: DuelState) -> dict[str, np.ndarray]:
    """The seats' arrays as a looking glass on the left wall shows them."""
    seats = state.seats
    boxes = seats.obstacles.copy()
    there = np.arange(boxes.shape[1]) < seats.obstacle_count[:, None]
    flipped = boxes[..., [2, 1, 0, 3]] * [-1, 1, -1, 1] + FLOOR_SIZE * np.array([1, 0, 1, 0])
    boxes[there] = flipped[there]
    left = np.array([FLOOR_SIZE, 0.0]) + seats.position * [-1, 1]
    enemies = np.array([FLOOR_SIZE, 0.0]) + seats.enemies * [-1, 1]
    return {
        "position": left,
        "yaw": -seats.yaw,
        "enemies": enemies,
        "enemy_hits_left": seats.enemy_hits_left,
        "obstacles": boxes,
        "obstacle_count": seats.obstacle_count,
        "decisions": seats.decisions,
        "gun_ticks": seats.gun_ticks,
        "parameters": seats.parameters,
    }


def test_both_agents_see_and_earn_the_same_from_mirrored_starts_with_the_same_actions() -> None:
    duel, buffers = begun(DuelSettings(num_envs=64), scenario())
    np.testing.assert_array_equal(*np.split(buffers.observations, 2))
    random = np.random.default_rng(0)
    for _ in range(100):
        half = np.column_stack(
            [*(random.integers(0, size, 64) for size in (3, 3, 2)), random.uniform(-5, 5, 64)]
        )
        duel.step(np.tile(half, (2, 1)).astype(np.float32), buffers)
        np.testing.assert_array_equal(*np.split(buffers.observations, 2))
        assert not buffers.rewards.any()
