"""Difficulty weights with locks, and their effect on the blocks drawn next."""

import math

import numpy as np
import pytest
from arena_stage import new_stage
from hypothesis import given
from hypothesis import strategies as st

from aimbot_lab.foundation.difficulty_weights import DifficultyWeights
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.presets.files import load_presets
from aimbot_lab.worlds.arena.settings import ArenaSettings

LEVELS = st.integers(1, 5)


def test_they_begin_equal() -> None:
    assert DifficultyWeights().weights == (0.2,) * 5


def test_a_moved_weight_rescales_the_others_in_proportion() -> None:
    weights = DifficultyWeights.normalised([1, 1, 2, 0, 0]).move(1, 0.5)
    assert weights.weights == pytest.approx((0.5, 1 / 6, 1 / 3, 0, 0))


def test_others_that_are_all_0_share_alike() -> None:
    assert DifficultyWeights.normalised([1, 0, 0, 0, 0]).move(1, 0.2).weights == pytest.approx(
        (0.2,) * 5
    )


def test_a_locked_weight_stays_put() -> None:
    moved = DifficultyWeights().lock(2).lock(3).move(1, 0.5)
    assert moved.weights == pytest.approx((0.5, 0.2, 0.2, 0.05, 0.05))
    assert moved.lock(2, locked=False).move(2, 0.0).weights[1] == 0.0


@pytest.mark.parametrize(
    ("weights", "level", "value", "reason"),
    [
        (DifficultyWeights().lock(1), 1, 0.5, "locked"),
        (DifficultyWeights(), 1, 1.5, "between 0 and 1"),
        (DifficultyWeights(), 1, -0.1, "between 0 and 1"),
        (DifficultyWeights(), 1, math.nan, "between 0 and 1"),
        (DifficultyWeights(), 1, "0.5", "between 0 and 1"),
        (DifficultyWeights(), 6, 0.1, "between 1 and 5"),
        (DifficultyWeights(), 1.5, 0.1, "whole number"),
        (DifficultyWeights(), "1", 0.1, "whole number"),
        (DifficultyWeights().lock(2).lock(3), 1, 0.7, "impossible"),
        (DifficultyWeights().lock(2).lock(3).lock(4).lock(5), 1, 0.1, "impossible"),
    ],
)
def test_an_impossible_move_is_refused(
    weights: DifficultyWeights, level: int, value: float, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        weights.move(level, value)


@pytest.mark.parametrize(
    "weights", [[0, 0, 0, 0, 0], [1, 1], [math.inf] * 5, [-1, 1, 1, 1, 1], ["1"] * 5, []]
)
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(ConfigurationError, match="difficulty weights"):
        DifficultyWeights.normalised(weights)


@pytest.mark.parametrize("tiny", [5e-324, 1e-320, 1e-310])
def test_weights_of_any_size_keep_their_proportions(tiny: float) -> None:
    moved = DifficultyWeights.normalised([1, tiny, 0, 0, 0]).move(1, 0.3)
    assert moved.weights == pytest.approx((0.3, 0.7, 0, 0, 0))
    assert DifficultyWeights.normalised([1e308] * 5).weights == pytest.approx((0.2,) * 5)
    assert DifficultyWeights.normalised([tiny] * 5).weights == pytest.approx((0.2,) * 5)


@given(
    moves=st.lists(st.tuples(LEVELS, st.floats(0, 1), st.lists(LEVELS, max_size=4)), max_size=12)
)
def test_whatever_is_moved_they_sum_to_1_and_locked_ones_stay(
    moves: list[tuple[int, float, list[int]]],
) -> None:
    weights = DifficultyWeights()
    for level, value, locks in moves:
        before = DifficultyWeights(weights.weights)
        for lock in locks:
            before = before.lock(lock)
        try:
            weights = before.move(level, value)
        except ConfigurationError:
            continue
        assert sum(weights.weights) == pytest.approx(1)
        assert min(weights.weights) >= 0
        assert weights.weights[level - 1] == value
        for lock in locks:
            assert weights.weights[lock - 1] == before.weights[lock - 1]


def test_a_change_takes_effect_at_the_next_block_and_a_block_on_the_floor_stays() -> None:
    stage = new_stage(
        Scenario({"goto": 1.0}, {"goto": (1.0, 0.0, 0.0, 0.0, 0.0)}), num_envs=64, time_limit=1.0
    )
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
        ("fly", (1.0,) * 5, "no difficulties"),
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
    arena.reset(0, np.zeros((200, len(arena.spec.observation_names)), np.float32))
    assert set(arena.state.difficulty.tolist()) == {1, 2, 3, 5}
    with pytest.raises(ConfigurationError, match="goto has no preset of difficulty 4"):
        arena.set_scenario(Scenario({"goto": 1.0}, {"goto": (1.0,) * 5}))
    arena.set_difficulty_weights("goto", (1.0, 1.0, 0.0, 0.0, 1.0))
    with pytest.raises(ConfigurationError, match="difficulty 4"):
        arena.set_difficulty_weights("goto", (1.0, 1.0, 0.0, 0.5, 1.0))
