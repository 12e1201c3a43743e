"""The largest numbers that settings take, endings, and the rim of the FireBase."""

from pathlib import Path

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, new_stage, random_play
from pydantic import ValidationError

from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.presets import Preset, preset_faults
from aimbot_lab.worlds.arena.settings import ArenaSettings, RaySettings, RewardWeights

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


def test_a_single_preset_path_is_no_list_and_path_objects_are_taken() -> None:
    for single in ("mine.yaml", Path("mine.yaml")):
        with pytest.raises(ValidationError, match=r"must be a list .* such as \['mine.yaml'\]"):
            ArenaSettings(presets=single)
    assert ArenaSettings(presets=(Path("mine.yaml"), "b")).presets == ("mine.yaml", "b")


def test_an_enemy_that_is_on_the_rim_but_for_rounding_is_a_target() -> None:
    preset = Preset("nearly", "attack", 1, (5.0, 5.0, 4.0), (), ((7.0 + 5e-10, 5.0),))
    assert preset_faults(preset) == []
    arena = Arena(ArenaSettings(num_envs=256), (preset,))
    arena.set_scenario(Scenario({"attack": 1.0}))
    arena.reset(0, step_buffers(arena).observations)
    assert arena.state.enemy_is_target[:, 0].all()
