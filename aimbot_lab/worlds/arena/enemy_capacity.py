"""How many enemies a row has room for: as many as its scenarios may place."""

from collections.abc import Mapping

import numpy as np

from aimbot_lab.foundation.kernels import sampler_kinds
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import ArenaState, ScenarioTables

OF_ENEMIES = ("enemies", "enemy_hits_left", "enemy_is_target")  # [B, E, ...]
MAX_ENEMIES_OF_ROW = core.MAX_ENEMIES + core.MAX_PLACED


def enemy_room(scenario: ScenarioTables) -> int:
    """Most enemies that an episode of this scenario has; a target block's at least."""
    free, beside = (_highest(scenario, k) for k in (core.FREE_ENEMIES, core.BYSTANDERS))
    return max(free, core.MAX_ENEMIES + beside)


def _highest(scenario: ScenarioTables, k: int) -> int:
    """Highest whole number that parameter `k` takes."""
    kind, values = scenario.sampler[k], scenario.sampler_values[k]
    drawn = scenario.bounds[k, 1]
    if kind == sampler_kinds.CONSTANT:
        drawn = values[0]
    elif kind == sampler_kinds.UNIFORM:
        drawn = values[1]
    elif kind == sampler_kinds.RANGES:
        drawn = scenario.sampler_ranges[k, : scenario.sampler_range_count[k], 1].max()
    return int(np.clip(np.floor(drawn), *scenario.bounds[k]))


def with_room(state: ArenaState, room: int) -> ArenaState:
    """`state` with arrays for at least `room` enemies to a row; all others are the same arrays."""
    if room <= state.enemies.shape[1]:
        return state
    wider = {}
    for name in OF_ENEMIES:
        array = getattr(state, name)
        wider[name] = np.zeros((array.shape[0], room, *array.shape[2:]), array.dtype)
        wider[name][:, : array.shape[1]] = array
    return state._replace(**wider)


def write_state(state: ArenaState, values: Mapping[str, np.ndarray]) -> None:
    """Overwrite `state` with arrays by name, which may have room for fewer enemies."""
    for name, array in state._asdict().items():
        if name in OF_ENEMIES:
            array[...] = 0
            array[:, : values[name].shape[1]] = values[name]
        else:
            array[...] = values[name]
