"""Scenarios: parameters and difficulty weights by row and episode, and masks."""

import math
from collections.abc import Callable
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from arena_stage import (
    Stage,
    drawn,
    new_stage,
    random_play,
    ranges,
    row_digests,
    uniform,
)

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.presets import load_presets
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import parameter_bounds, parameter_values


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


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"mov_speed": 1.0}, "no parameter"),
        ({"move_speed": -1.0}, "move_speed must lie between 0 and 1000"),
        ({"move_speed": inf}, "move_speed must lie between 0 and 1000"),
        ({"rewards.win": inf}, "rewards.win must lie between"),
        ({"move_speed": 10**400}, "move_speed must not be a number beyond"),
        ({"move_speed": "3"}, "move_speed must be a number or a sampler"),
        ({"free_enemies": uniform(2.2, 2.8)}, "where there are whole numbers"),
        ({"free_enemies": ranges((1.0, 2.0), (2.2, 2.8))}, "where there are whole numbers"),
        ({"free_enemies": 80.0, "floor_size": 26.0, "enemy_radius": 1.0}, "finds a free place"),
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
    assert set(one.target.tolist()) == {core.TARGET.free, core.TARGET.goto}


def test_a_snapshot_carries_its_scenario_with_it() -> None:
    scenario = Scenario({"goto": 1.0, "free": 1.0}, parameters={"move_speed": uniform(3, 6)})
    stage, other = (
        new_stage(kind, seed, num_envs=16, time_limit=1.0)
        for kind, seed in ((scenario, 0), (Scenario({"stay": 1.0}), 9))
    )
    other.arena.restore(stage.arena.snapshot())
    play = random_play(40, 16, seed=1)
    assert row_digests(stage, play) == row_digests(other, play)


def test_a_change_takes_effect_at_the_next_block_and_a_block_on_the_floor_stays() -> None:
    easy = Scenario({"goto": 1.0}, {"goto": (1.0, 0.0, 0.0, 0.0, 0.0)})
    stage = new_stage(easy, num_envs=64, time_limit=1.0)
    arena = stage.arena
    before = arena.state.block.copy()
    number = arena.set_difficulty_weights("goto", (0.0, 0.0, 0.0, 1.0, 1.0))
    stage.repeat(0, 0, 0, 0.0)
    np.testing.assert_array_equal(arena.state.block, before)
    assert (arena.state.difficulty == 1).all()
    for _ in range(9):
        stage.repeat(0, 0, 0, 0.0)
    assert set(arena.state.difficulty.tolist()) == {4, 5}
    assert (arena.state.scenario == number).all()


@pytest.mark.parametrize(
    ("target", "weights", "reason"),
    [
        ("free", (1.0,) * 5, "no difficulties"),
        ("goto", (1.0,) * 4, "5 difficulties"),
        ("goto", (0.0,) * 5, "goto: weights must .* not all 0"),
        ("goto", ("1",) * 5, "numbers"),
        ("goto", (math.nan,) * 5, "finite"),
    ],
)
def test_weights_that_the_arena_cannot_draw_from_are_refused(
    target: str, weights: tuple[float, ...], reason: str
) -> None:
    arena = new_stage(Scenario({"goto": 1.0}), num_envs=1).arena
    with pytest.raises(ConfigurationError, match=reason):
        arena.set_difficulty_weights(target, weights)


def test_a_weight_on_a_difficulty_without_a_preset_is_refused_by_name() -> None:
    presets = [preset for preset in load_presets() if preset.difficulty != 4]
    arena = Arena(ArenaSettings(num_envs=200), presets)
    arena.set_scenario(Scenario({"goto": 1.0}))  # without weights, those that have one
    arena.reset(0, step_buffers(arena).observations)
    assert set(arena.state.difficulty.tolist()) == {1, 2, 3, 5}
    with pytest.raises(ConfigurationError, match="goto has no preset of difficulty 4"):
        arena.set_scenario(Scenario({"goto": 1.0}, {"goto": (1.0,) * 5}))
    arena.set_difficulty_weights("goto", (1.0, 1.0, 0.0, 0.0, 1.0))
    with pytest.raises(ConfigurationError, match="difficulty 4"):
        arena.set_difficulty_weights("goto", (1.0, 1.0, 0.0, 0.5, 1.0))


def masks_of(stage: Stage) -> np.ndarray:
    masks = np.zeros((stage.arena.num_envs, 8), np.bool_)
    stage.arena.action_masks(masks)
    return masks


def test_masks_in_reach_of_a_wall_are_those_of_the_walk() -> None:
    reach, low, high = 0.5, 0.5, 46.5
    for gap, may_go in ((0.0, False), (2e-6, True), (reach, True), (reach + 1e-9, True)):
        for place, blocked in ((low + gap, [2, 5]), (high - gap, [1, 4])):
            stage = new_stage(Scenario({"stay": 1.0}), num_envs=1, start_position=(place, place))
            masks = masks_of(stage)[0]
            assert (masks[blocked] == may_go).all()
            assert masks[[1, 2, 4, 5]].sum() == (4 if may_go else 2)


def test_on_open_floor_a_walk_is_allowed_where_it_is_long_enough_to_count() -> None:
    for reach, is_move in ((9e-7, False), (1.1e-6, True)):
        still = Scenario({"stay": 1.0}, parameters={"move_speed": reach / 0.1})
        masks = masks_of(new_stage(still, num_envs=3, start_position=(20.0, 20.0)))
        assert (masks[:, [1, 2, 4, 5]] == is_move).all()


def test_masks_are_of_the_state_in_force_after_it_was_replaced() -> None:
    still = Scenario({"stay": 1.0})
    stage = new_stage(still, num_envs=2, start_position=(20.0, 20.0))
    masks_of(stage)
    state = stage.arena.state
    stage.arena.adopt(state._replace(gun_ticks=np.array([3, 0], state.gun_ticks.dtype)))
    assert masks_of(stage)[:, 7].tolist() == [False, True]
