"""Samplers draw parameters of episodes as they say."""

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, ROWS, drawn, gaussian, new_stage, ranges, uniform

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.core import state as core

SPEED = core.AT.move_speed


def test_a_uniform_sampler_fills_its_interval_evenly() -> None:
    counts, _ = np.histogram(drawn("move_speed", uniform(4.0, 6.0)), bins=10, range=(4.0, 6.0))
    assert counts.sum() == ROWS
    # Chi-squared with 9 degrees of freedom stays under 27.9 in 999 of 1,000 cases.
    assert ((counts - ROWS / 10) ** 2 / (ROWS / 10)).sum() < 27.9


def test_a_gaussian_sampler_has_its_mean_and_deviation() -> None:
    values = drawn("move_speed", gaussian(5.0, 0.5))
    assert values.mean() == pytest.approx(5.0, abs=4 * 0.5 / ROWS**0.5)
    assert values.std() == pytest.approx(0.5, rel=0.08)
    within = (abs(values - 5.0) < 0.5).mean()
    assert within == pytest.approx(0.683, abs=0.04)


def test_ranges_are_drawn_in_proportion_to_their_length() -> None:
    values = drawn("move_speed", ranges((1.0, 2.0), (5.0, 8.0)))
    counts, _ = np.histogram(values, bins=[1.0, 2.0, 5.0, 8.0])
    assert counts[0] / ROWS == pytest.approx(0.25, abs=0.04)
    assert (counts[1], counts.sum()) == (0, ROWS)


def test_a_draw_beyond_what_a_parameter_takes_is_moved_to_its_bound() -> None:
    assert drawn("move_speed", gaussian(0.0, 1.0)).min() == 0.0
    hits = drawn("enemy_hits_to_kill", gaussian(2.0, 2.0))
    assert hits.min() == 1.0
    np.testing.assert_array_equal(hits, np.rint(hits))
    assert drawn("time_limit", gaussian(30.0, 10.0)).max() == 30.0


def test_a_sampler_draws_anew_for_each_episode_and_row() -> None:
    scenario = Scenario({"goto": 1.0}, parameters={"move_speed": uniform(1.0, 9.0)})
    stage = new_stage(scenario, num_envs=8, time_limit=1.0)
    speeds = [stage.arena.state.parameters[:, SPEED].copy()]
    for decision in range(1, 31):
        stage.repeat(0, 0, 0, 0.0)
        new = stage.arena.state.parameters[:, SPEED].copy()
        if decision % 10:
            np.testing.assert_array_equal(new, speeds[-1])
        else:
            speeds.append(new)
    assert len(np.unique(np.concatenate(speeds))) == 4 * 8


def test_a_sampler_with_a_seed_draws_the_same_whatever_the_run() -> None:
    first, second = (drawn("move_speed", uniform(1, 9, seed=3), seed, rows=50) for seed in (1, 2))
    np.testing.assert_array_equal(first, second)
    unseeded = [drawn("move_speed", uniform(1, 9), seed, rows=50) for seed in (1, 2)]
    assert not np.array_equal(*unseeded)
    assert not np.array_equal(first, drawn("move_speed", uniform(1, 9, seed=4), rows=50))


def test_samplers_do_not_disturb_where_things_stand() -> None:
    sampled = Scenario(ALL_TARGETS.targets, parameters={"move_speed": uniform(4, 6)})
    one, other = (new_stage(kind, num_envs=32).arena.state for kind in (ALL_TARGETS, sampled))
    np.testing.assert_array_equal(one.obstacles, other.obstacles)
    np.testing.assert_array_equal(one.enemies, other.enemies)


def shares(values: np.ndarray) -> dict[float, float]:
    """How often each value occurs, as a share of all."""
    return {float(value): float((values == value).mean()) for value in np.unique(values)}


def test_ranges_without_length_are_drawn_alike() -> None:
    points = ranges((1.0, 1.0), (4.0, 4.0), (6.0, 6.0))
    for name in ("move_speed", "free_enemies"):
        got = shares(drawn(name, points))
        assert got == {point: pytest.approx(1 / 3, abs=0.045) for point in (1.0, 4.0, 6.0)}


def test_whole_numbers_are_drawn_alike_from_end_to_end() -> None:
    # 4 standard deviations of a share of a quarter in 2,000 draws are 0.039.
    quarter = pytest.approx(0.25, abs=0.039)
    for value in (uniform(2.0, 5.0), uniform(1.5, 5.5), ranges((2.0, 4.0), (5.0, 5.9))):
        assert shares(drawn("free_enemies", value)) == dict.fromkeys((2.0, 3.0, 4.0, 5.0), quarter)
    half = pytest.approx(0.5, abs=0.045)
    assert shares(drawn("line_stopped_by_obstacles", uniform(0.0, 1.0))) == {0.0: half, 1.0: half}
