"""The laws of the duel: swap, zero sum, the same bits, discs, reflection."""

import numpy as np
import pytest
from duel_stage import Crowd, begun, played, scenario, swapped, swapped_seats

from aimbot_lab.worlds.duel.core.state import HIT, RADIUS
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
def test_what_the_two_earn_is_exactly_opposed_and_discs_never_overlap(level: int) -> None:
    drawn = scenario(level, rewards__move_penalty=-0.3, away__move_speed=12.0)
    duel, buffers = begun(UNEQUAL, drawn)
    touched = 0
    for step in played(duel, buffers, 200):
        for zero_sum in (step["rewards"], duel.state.terms, step["terms"]):
            home, away = np.split(zero_sum, 2)
            np.testing.assert_array_equal(home, -away)
        np.testing.assert_array_equal(*np.split(step["finished"], 2))
        touched += touching(duel)
    assert touched > 0


def touching(duel: Duel) -> int:
    """Matches whose agents touch; fails where discs overlap, or are not on the free floor."""
    state, matches = duel.state, duel.num_envs
    radius, seats = state.traits[:, RADIUS], state.seats
    home, away = seats.position[:matches], FLOOR_SIZE - seats.position[matches:]
    gaps = np.hypot(*(home - away).T) - radius[:matches] - radius[matches:]
    assert gaps.min() > -1e-8
    edge = np.minimum(seats.position, FLOOR_SIZE - seats.position).min(axis=1)
    assert (edge >= radius - 1e-9).all()
    boxes, place = seats.obstacles, seats.position[:, None]
    beyond = np.maximum(np.maximum(boxes[..., :2] - place, place - boxes[..., 2:]), 0.0)
    there = np.arange(boxes.shape[1]) < seats.obstacle_count[:, None]
    away_from = np.where(there, np.hypot(beyond[..., 0], beyond[..., 1]), np.inf)
    assert (away_from.min(axis=1) >= radius - 1e-8).all()
    return int((gaps < CLOSE).sum())


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
