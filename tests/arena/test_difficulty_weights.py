"""Difficulty weights, and their effect on the blocks drawn next."""

import math

import numpy as np
import pytest
from arena_stage import new_stage
from hypothesis import strategies as st

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.presets import load_presets
from aimbot_lab.worlds.arena.settings import ArenaSettings

LEVELS = st.integers(1, 5)


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
