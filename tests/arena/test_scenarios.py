"""Parameters by row and episode, samplers, masks and snapshots."""

from collections.abc import Callable
from fractions import Fraction
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play
from pydantic import ValidationError

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.samplers import (
    Gaussian,
    GaussianParameters,
    MultiRangeUniform,
    MultiRangeUniformParameters,
    ParameterValue,
    Uniform,
    UniformParameters,
)
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.parameters import parameter_bounds, parameter_values
from aimbot_lab.worlds.arena.settings import ArenaSettings, RaySettings, RewardWeights

ROWS = 2000
SPEED = core.MOVE_SPEED


def uniform(low: float, high: float, seed: int | None = None) -> Uniform:
    parameters = UniformParameters(min_value=low, max_value=high, seed=seed)
    return Uniform(sampler_parameters=parameters)


def gaussian(mean: float, st_dev: float) -> Gaussian:
    return Gaussian(sampler_parameters=GaussianParameters(mean=mean, st_dev=st_dev))


def ranges(*intervals: tuple[float, float]) -> MultiRangeUniform:
    parameters = MultiRangeUniformParameters(intervals=intervals)
    return MultiRangeUniform(sampler_parameters=parameters)


def drawn(name: str, value: ParameterValue, seed: int = 0, rows: int = ROWS) -> np.ndarray:
    stage = new_stage(Scenario({"stay": 1.0}, parameters={name: value}), seed, num_envs=rows)
    column: np.ndarray = stage.arena.state.parameters[:, core.PARAMETERS.index(name)]
    return column.copy()


def test_each_parameter_is_a_setting_and_takes_effect_under_its_name() -> None:
    values = parameter_values(ArenaSettings())
    for index, (name, usual) in enumerate(values.items()):
        bounds = parameter_bounds()[name]
        other = min(max(usual + 1.0, bounds.low), bounds.high)
        if name in ("time_limit", "floor_size", "rays.range"):
            other = usual - 1.0
        stage = new_stage(Scenario({"stay": 1.0}, parameters={name: other}), num_envs=1)
        got = dict(zip(core.PARAMETERS, stage.arena.state.parameters[0], strict=True))
        assert got.pop(name) == other, name
        assert got == {key: v for key, v in values.items() if key != name}
        assert core.PARAMETERS[index] == name


def test_a_uniform_sampler_fills_its_interval_evenly() -> None:
    values = drawn("move_speed", uniform(4.0, 6.0))
    assert values.min() >= 4.0
    assert values.max() <= 6.0
    counts, _ = np.histogram(values, bins=10, range=(4.0, 6.0))
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
    low = values < 3.0
    assert low.mean() == pytest.approx(0.25, abs=0.04)
    assert ((values[low] >= 1) & (values[low] <= 2)).all()
    assert ((values[~low] >= 5) & (values[~low] <= 8)).all()


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
    plain = new_stage(ALL_TARGETS, num_envs=32)
    sampled = new_stage(
        Scenario(ALL_TARGETS.targets, parameters={"move_speed": uniform(4, 6)}), num_envs=32
    )
    np.testing.assert_array_equal(plain.arena.state.obstacles, sampled.arena.state.obstacles)
    np.testing.assert_array_equal(plain.arena.state.enemies, sampled.arena.state.enemies)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"mov_speed": 1.0}, "no parameter"),
        ({"move_speed": -1.0}, "move_speed must lie between 0 and 1000"),
        ({"move_speed": uniform(-1.0, 1.0)}, "move_speed must lie between 0 and 1000"),
        ({"move_speed": inf}, "move_speed must lie between 0 and 1000"),
        ({"move_speed": nan}, "move_speed must lie between 0 and 1000"),
        ({"rewards.win": inf}, "rewards.win must lie between"),
        ({"rewards.win": -inf}, "rewards.win must lie between"),
        ({"free_enemies": inf}, "whole number"),
        ({"move_speed": 10**400}, "move_speed must not be a number beyond"),
        ({"move_speed": "3"}, "move_speed must be a number or a sampler"),
        ({"move_speed": None}, "move_speed must be a number or a sampler"),
        ({"free_enemies": uniform(2.2, 2.8)}, "where there are whole numbers"),
        ({"free_enemies": ranges((1.0, 2.0), (2.2, 2.8))}, "where there are whole numbers"),
        ({"free_enemies": 101.0}, "free_enemies must lie between"),
        ({"bystanders": -1.0}, "bystanders must lie between"),
        ({"free_enemies": 80.0, "floor_size": 26.0, "enemy_radius": 1.0}, "finds a free place"),
        ({"bystanders": 80.0, "floor_size": 26.0, "enemy_radius": 0.9}, "finds a free place"),
        ({"free_enemies": 2.5}, "whole number"),
        ({"time_limit": 31.0}, "bounds the observation"),
        ({"floor_size": 26.0, "block_gap_to_walls": 3.0}, "floor_size must be at least"),
        ({"block_gap_to_agent": 20.0}, "floor_size must be at least"),
    ],
)
def test_parameters_that_the_arena_cannot_take_are_refused(
    parameters: dict[str, ParameterValue], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        new_stage(Scenario({"goto": 1.0}, parameters=parameters), num_envs=1)


@pytest.mark.parametrize("kind", [np.float32, np.int64, int, Fraction])
def test_any_kind_of_real_number_is_a_parameter(kind: Callable[[int], float]) -> None:
    assert drawn("move_speed", kind(3), rows=1).tolist() == [3.0]


@pytest.mark.parametrize("target", ["1", None, -1.0, inf])
def test_weights_that_are_no_weights_are_refused(target: float) -> None:
    with pytest.raises(ConfigurationError, match="targets: weights must be"):
        new_stage(Scenario({"goto": target}), num_envs=1)


@pytest.mark.parametrize("size", [1e308, 1.0, 5e-324])
def test_only_the_proportions_of_weights_count(size: float) -> None:
    even = Scenario({"goto": 1.0, "free": 1.0}, {"goto": (1.0,) * 5})
    same = Scenario({"goto": size, "free": size}, {"goto": (size,) * 5})
    one, other = (new_stage(scenario, num_envs=300).arena.state for scenario in (even, same))
    np.testing.assert_array_equal(one.target, other.target)
    np.testing.assert_array_equal(one.difficulty, other.difficulty)
    assert set(one.target.tolist()) == {core.FREE, core.GOTO}


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


EXTREMES = (
    {"mouse_limit": 1000.0, "mouse_factor": 10.0, "spin_window": 1000, "spin_threshold": 1e6},
    {"gun_cooldown": 3600.0, "fixed_timestep": 0.0001, "gun_range": 10_000.0},
    {"move_speed": 1000.0, "agent_radius": 0.05, "decision_period": 20, "fixed_timestep": 0.1},
    {"spin_rate": 1e6, "facing_distance": 1e6, "goto_win_radius": 1000.0},
    {"rewards": RewardWeights(win=1e9, lose=-1e9, spin_penalty=1e9, distance=-1e9)},
    {"rays": RaySettings(range=10_000.0), "floor_size": 1000.0, "block_gap_to_agent": 100.0},
)


@pytest.mark.parametrize("extreme", EXTREMES, ids=str)
def test_the_largest_numbers_that_settings_take_keep_every_promise(extreme) -> None:
    stage = new_stage(ALL_TARGETS, num_envs=8, **{"time_limit": 200.0, **extreme})
    low, high = stage.arena.spec.observation_low, stage.arena.spec.observation_high
    spins = np.zeros(8)
    for actions in random_play(60, 8):
        actions[:, 3] = np.where(actions[:, 3] > -4, 3e38, -3e38)
        if "mouse_limit" in extreme:
            spins += np.clip(actions[:, 3], -1000, 1000)
            started = stage.arena.state.decisions == 0
            spins[started] = np.clip(actions[started, 3], -1000, 1000)
        stage.step(actions)
        seen = stage.buffers.observations
        assert ((seen >= low) & (seen <= high)).all()  # false for NaN as well
        assert np.isfinite(stage.buffers.rewards).all()
        assert (stage.arena.state.gun_ticks >= 0).all()
    if "mouse_limit" in extreme:
        going = ~stage.buffers.finished
        np.testing.assert_array_equal(stage.arena.state.spin_sum[going] * 2.0**-40, spins[going])


@pytest.mark.parametrize(
    "field",
    [
        {"mouse_limit": 1e7},
        {"mouse_factor": 1e308},
        {"gun_cooldown": 1e9},
        {"gun_range": 1e5},
        {"move_speed": 1e4},
        {"goto_win_radius": 1e4},
        {"block_gap_to_agent": 101.0},
        {"spin_threshold": 1e7},
        {"spin_rate": 1e7},
        {"facing_distance": 1e7},
        {"agent_radius": 0.01},
        {"enemy_radius": 0.01},
        {"fixed_timestep": 1e-300},
        {"rays": {"range": 1e5}},
        {"rewards": {"win": 1e10}},
        {"rewards": {"lose": -1e10}},
    ],
    ids=str,
)
def test_numbers_beyond_all_sense_are_refused(field: dict) -> None:
    with pytest.raises(ValidationError, match=r"(less|greater) than or equal"):
        ArenaSettings(**field)


def test_a_single_preset_path_is_no_list_and_path_objects_are_taken() -> None:
    for single in ("mine.yaml", Path("mine.yaml")):
        with pytest.raises(ValidationError, match=r"must be a list .* such as \['mine.yaml'\]"):
            ArenaSettings(presets=single)
    assert ArenaSettings(presets=(Path("mine.yaml"), "b")).presets == ("mine.yaml", "b")


def test_a_view_angle_by_episode_moves_the_rays() -> None:
    scenario = Scenario({"stay": 1.0}, parameters={"rays.view_angle": uniform(30.0, 170.0)})
    state = new_stage(scenario, num_envs=50).arena.state
    outer = np.degrees(np.arctan2(state.ray_sin[:, 18], state.ray_cos[:, 18]))
    np.testing.assert_allclose(outer, state.parameters[:, core.VIEW_ANGLE] / 2, atol=1e-4)


def masks_of(stage: Stage) -> np.ndarray:
    masks = np.zeros((stage.arena.num_envs, 8), np.bool_)
    stage.arena.action_masks(masks)
    return masks


def test_masks_tell_what_the_next_decision_would_not_do() -> None:
    stage = new_stage(ALL_TARGETS, num_envs=32)
    blocked = 0
    for actions in random_play(150, 32, seed=2):
        masks = masks_of(stage)
        kept = stage.arena.snapshot()
        np.testing.assert_array_equal(masks[:, 7], stage.buffers.observations[:, 7] == 1.0)
        for column in (1, 2, 4, 5):
            branch, index = divmod(column, 3)
            tried = np.zeros((32, 4), np.float32)
            tried[:, branch] = index
            before = stage.arena.state.position.copy()
            # A time-out may place the agent anew: only rows that go on are compared.
            stage.step(tried)
            going = ~stage.buffers.finished
            moved = np.linalg.norm(stage.arena.state.position - before, axis=1) > 1e-6
            np.testing.assert_array_equal(masks[going, column], moved[going])
            stage.arena.restore(kept)
        assert masks[:, [0, 3, 6]].all()
        blocked += int((~masks[:, [1, 2, 4, 5]]).sum())
        stage.step(actions)
    assert blocked > 0


@pytest.mark.parametrize(
    ("reach", "is_move"), [(0.0, False), (9e-7, False), (1.1e-6, True), (2.1e-6, True)]
)
def test_on_open_floor_a_walk_is_allowed_where_it_is_long_enough_to_count(
    reach: float, is_move: bool
) -> None:
    still = Scenario({"stay": 1.0}, parameters={"move_speed": reach / 0.1})
    masks = masks_of(new_stage(still, num_envs=3, start_position=(20.0, 20.0)))
    assert (masks[:, [1, 2, 4, 5]] == is_move).all()


def test_masks_in_reach_of_a_wall_are_those_of_the_walk() -> None:
    reach, low, high = 0.5, 0.5, 46.5
    for gap, may_go in ((0.0, False), (2e-6, True), (reach, True), (reach + 1e-9, True)):
        for place, blocked in ((low + gap, [2, 5]), (high - gap, [1, 4])):
            stage = new_stage(Scenario({"stay": 1.0}), num_envs=1, start_position=(place, place))
            masks = masks_of(stage)[0]
            assert (masks[blocked] == may_go).all()
            assert masks[[1, 2, 4, 5]].sum() == (4 if may_go else 2)


def test_a_snapshot_carries_its_scenario_with_it() -> None:
    scenario = Scenario({"goto": 1.0, "free": 1.0}, parameters={"move_speed": uniform(3, 6)})
    stage = new_stage(scenario, num_envs=16, time_limit=1.0)
    kept = stage.arena.snapshot()
    other = new_stage(Scenario({"stay": 1.0}), num_envs=16, time_limit=1.0, seed=9)
    other.arena.restore(kept)
    for actions in random_play(40, 16, seed=1):
        stage.step(actions)
        other.step(actions)
        for left, right in zip(stage.buffers, other.buffers, strict=True):
            np.testing.assert_array_equal(left, right)
