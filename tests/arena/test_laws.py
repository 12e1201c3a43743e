"""Laws of the arena: what holds for every placement and every play."""

import math
from pathlib import Path

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play, row_digests

from aimbot_lab.foundation.world import Scenario
from tests.installed import said_by

FLOOR = 47.0
RAYS = 19
SOLID = Scenario({"goto": 1.0, "attack": 1.0, "free": 0.5})


def wrapped(angle: np.ndarray) -> np.ndarray:
    return np.pi - np.mod(np.pi - angle, 2.0 * np.pi)


def quarter_turned(places: np.ndarray) -> np.ndarray:
    return np.stack([places[..., 1], FLOOR - places[..., 0]], axis=-1)


def mirrored(places: np.ndarray) -> np.ndarray:
    return np.stack([FLOOR - places[..., 0], places[..., 1]], axis=-1)


def mapped_boxes(boxes: np.ndarray, mapping) -> np.ndarray:
    ends = np.stack([mapping(boxes[..., :2]), mapping(boxes[..., 2:])])
    return np.concatenate([ends.min(axis=0), ends.max(axis=0)], axis=-1)


def with_image(mapping, yaw_mapping, seed: int) -> Stage:
    """An arena whose second half of rows is the image of the first half."""
    stage = new_stage(SOLID, seed, num_envs=48)
    state, half = stage.arena.state, 24
    agents = np.random.default_rng(seed)
    for _ in range(20):  # walk the agents about, so that they do not all start in the corner
        stage.step(random_play(1, 48, seed=int(agents.integers(1000)))[0])
    for array in state:
        if array.shape[0] == 2 * half:
            array[half:] = array[:half]
    state.position[half:] = mapping(state.position[half:])
    state.fire_base[half:, :2] = mapping(state.fire_base[half:, :2])
    state.enemies[half:] = mapping(state.enemies[half:])
    state.obstacles[half:] = mapped_boxes(state.obstacles[half:], mapping)
    state.yaw[half:] = wrapped(yaw_mapping(state.yaw[half:]))
    return stage


def compare_image(stage: Stage, mapping, *, image_play, reverse_rays: bool) -> None:
    """Play both halves, and compare them step by step."""
    state, half = stage.arena.state, 24
    play = random_play(120, half, seed=3)
    same = np.ones(half, bool)
    compared, odd_rays = 0, 0
    for actions in play:
        stage.step(np.concatenate([actions, image_play(actions)]))
        finished, rewards = stage.buffers.finished, stage.buffers.rewards
        assert (finished[:half] == finished[half:])[same].all()
        np.testing.assert_allclose(rewards[:half][same], rewards[half:][same], atol=1e-4)
        same &= ~finished[:half]
        image = mapping(state.position[:half])
        np.testing.assert_allclose(image[same], state.position[half:][same], atol=1e-6)
        assert (state.enemy_hits_left[:half] == state.enemy_hits_left[half:])[same].all()
        rays = stage.buffers.observations[:, 13:].reshape(2, half, 2, RAYS)[:, same]
        seen, seen_in_image = rays[0], rays[1][..., ::-1] if reverse_rays else rays[1]
        odd_rays += (np.abs(seen - seen_in_image) > 1e-3).any(axis=1).sum()
        compared += same.sum()
    assert odd_rays <= 1e-4 * compared * RAYS  # rays that graze an edge
    assert compared > 1500


def test_a_turned_arena_gives_the_turned_trajectory() -> None:
    stage = with_image(quarter_turned, lambda yaw: yaw + np.pi / 2, seed=1)
    compare_image(stage, quarter_turned, image_play=lambda actions: actions, reverse_rays=False)


def test_a_mirrored_arena_gives_the_mirrored_trajectory_and_mirrored_rays() -> None:
    def mirrored_play(actions: np.ndarray) -> np.ndarray:
        image = actions.copy()
        image[:, 1] = np.array([0.0, 2.0, 1.0])[actions[:, 1].astype(int)]
        image[:, 3] = -actions[:, 3]
        return image

    stage = with_image(mirrored, lambda yaw: -yaw, seed=2)
    compare_image(stage, mirrored, image_play=mirrored_play, reverse_rays=True)


def test_a_row_plays_alike_in_a_batch_of_any_size_on_any_number_of_threads() -> None:
    play = random_play(120, 1024)
    whole, *others = (
        row_digests(
            new_stage(ALL_TARGETS, 5, num_envs=rows, threads=threads, time_limit=4.0),
            play[:, :rows],
        )
        for rows, threads in ((1024, 1), (1, 1), (7, 1), (1024, 2), (1024, 3))
    )
    assert [whole[: len(other)] for other in others] == others
    assert len(set(whole)) == 1024


def test_a_second_process_without_the_jit_plays_the_same_trajectory() -> None:
    here = row_digests(new_stage(ALL_TARGETS, 5, num_envs=7), random_play(60, 7))
    program = Path(__file__).with_name("arena_stage.py")
    there = said_by("-W", "ignore", program, NUMBA_DISABLE_JIT="1")
    assert there.split() == here


def test_stacked_observations_are_the_last_ones_of_the_episode_oldest_first() -> None:
    plain, stacked = (
        new_stage(ALL_TARGETS, 3, num_envs=16, time_limit=1.0, stacked_vectors=count)
        for count in (1, 3)
    )
    width = plain.buffers.observations.shape[1]
    begun = plain.buffers.observations.copy()
    last = [np.zeros_like(begun), np.zeros_like(begun), begun]
    np.testing.assert_array_equal(stacked.buffers.observations, np.concatenate(last, axis=1))
    for actions in random_play(40, 16):
        for stage in (plain, stacked):
            stage.step(actions)
        ended = plain.buffers.finished[:, None]
        now = np.where(ended, plain.buffers.final_observations, plain.buffers.observations)
        last = [*last[1:], now]
        wanted = np.concatenate(last, axis=1)
        finals = stacked.buffers.final_observations[ended[:, 0]]
        np.testing.assert_array_equal(finals, wanted[ended[:, 0]])
        last = [np.where(ended, np.float32(0.0), old) for old in last]
        last[-1] = plain.buffers.observations.copy()
        wanted = np.concatenate(last, axis=1)
        np.testing.assert_array_equal(stacked.buffers.observations, wanted)
        assert wanted.shape[1] == 3 * width


WILD = {
    "as usual": {},
    "reckless": {"move_speed": 60.0, "time_limit": 12.0},
    "reckless and slow to decide": {
        **{"move_speed": 60.0, "decision_period": 20, "fixed_timestep": 0.1, "time_limit": 60.0},
        **{"mouse_limit": 40.0, "floor_size": 33.0},
    },
    "thin agent, fat enemies": {"agent_radius": 0.05, "enemy_radius": 1.0, "move_speed": 40.0},
}


@pytest.mark.parametrize("settings", WILD.values(), ids=WILD)
@pytest.mark.parametrize("target", ["free", "goto", "attack", "stay"])
def test_wild_play_stays_on_free_floor_and_ends_in_time(target: str, settings: dict) -> None:
    stage = new_stage(Scenario({target: 1.0}), 11, num_envs=128, **settings)
    arena, state = stage.arena, stage.arena.state
    limit = round(arena.settings.time_limit / arena.settings.decision_seconds)
    random = np.random.default_rng(4)
    radius, floor = arena.settings.agent_radius, arena.settings.floor_size
    reach = radius + arena.settings.enemy_radius
    for actions in random_play(400, 128):
        actions[:, 3] = np.where(random.random(128) < 0.1, actions[:, 3] * 1e30, actions[:, 3])
        batch = stage.step(actions)
        assert (batch.length <= limit).all()
        assert target != "stay" or not batch
        assert (state.position >= radius - 1e-9).all()
        assert (state.position <= floor - radius + 1e-9).all()
        assert gaps_to_boxes(state).min() >= radius - 1e-8
        assert gaps_to_enemies(state).min() >= reach - 1e-8
        for observations in (stage.buffers.observations, stage.buffers.final_observations):
            assert (observations >= arena.spec.observation_low - 1e-5).all()
            assert (observations <= arena.spec.observation_high + 1e-5).all()
        assert np.isfinite(stage.buffers.rewards).all()


def gaps_to_boxes(state) -> np.ndarray:
    """Distance of each agent's centre to each obstacle in use, infinite for the rest."""
    place = state.position[:, None, :]
    low, high = state.obstacles[..., :2], state.obstacles[..., 2:]
    gap = np.hypot(*np.moveaxis(place - np.clip(place, low, high), -1, 0))
    return np.where(np.arange(gap.shape[1]) < state.obstacle_count[:, None], gap, math.inf)


def gaps_to_enemies(state) -> np.ndarray:
    """Distance of each agent's centre to each living enemy's, infinite for the rest."""
    gap = np.hypot(*np.moveaxis(state.position[:, None, :] - state.enemies, -1, 0))
    there = np.arange(gap.shape[1]) < state.enemy_count[:, None]
    return np.where(there & (state.enemy_hits_left > 0), gap, math.inf)
