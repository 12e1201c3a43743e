"""What `presets check` takes for an enemy in the FireBase is one in play."""

import numpy as np
import pytest
from arena_stage import Stage

from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.presets import Preset, preset_faults
from aimbot_lab.worlds.arena.settings import ArenaSettings

EAST = Preset("east", "attack", 1, (5.1, 5.0, 4.2), (), ((7.2, 5.0),))
SLANT = Preset("slant", "attack", 1, (5.1, 5.1, 5.0), (), ((6.6, 7.1), (3.6, 3.1)))
NEARLY = Preset("nearly", "attack", 1, (5.0, 5.0, 4.0), (), ((7.0 + 5e-10, 5.0),))


@pytest.mark.parametrize("preset", [EAST, SLANT, NEARLY], ids=lambda preset: preset.name)
def test_an_enemy_on_the_rim_is_a_target_wherever_the_block_stands(preset: Preset) -> None:
    assert preset_faults(preset) == []
    arena = Arena(ArenaSettings(num_envs=256), (preset,))
    arena.set_scenario(Scenario({"attack": 1.0}))
    buffers = new_step_buffers(256, len(arena.spec.observation_names))
    arena.reset(0, buffers.observations)
    ended = Stage(arena, buffers).repeat(0, 0, 0, 0)
    assert not ended
    assert not buffers.finished.any()
    count = len(preset.enemies)
    assert (arena.state.enemy_count == count).all()
    np.testing.assert_array_equal(arena.state.enemy_is_target[:, :count], True)
