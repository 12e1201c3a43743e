"""How many enemies and obstacles rows have room for: what scenarios and a person may place."""

from collections.abc import Mapping

import numpy as np

from aimbot_lab.foundation.kernels import sampler_kinds
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import ArenaState, ScenarioTables

OF_ENEMIES = ("enemies", "enemy_hits_left", "enemy_is_target")  # [B, E, ...]
OF_ROOM = (*OF_ENEMIES, "obstacles")  # what grows
MAX_ENEMIES_OF_ROW = core.MAX_ENEMIES + core.MAX_PLACED
MAX_OBSTACLES_OF_ROW = 1024


def enemy_room(scenario: ScenarioTables) -> int:
    """Most enemies that an episode of this scenario has; a target block's at least."""
    free, beside = (_highest(scenario, k) for k in (core.FREE_ENEMIES, core.BYSTANDERS))
    return max(free, core.MAX_ENEMIES + beside)


def _highest(scenario: ScenarioTables, k: int) -> int:
    """Highest whole number that parameter `k` takes."""
    kind, values = scenario.sampler[k], scenario.sampler_values[k]
    if kind == sampler_kinds.CONSTANT:
        drawn = values[0]
    elif kind == sampler_kinds.UNIFORM:
        drawn = values[1]
    elif kind == sampler_kinds.RANGES:
        drawn = scenario.sampler_ranges[k, : scenario.sampler_range_count[k], 1].max()
    else:  # no highest one of its own
        drawn = scenario.bounds[k, 1]
    return int(np.clip(np.floor(drawn), *scenario.bounds[k]))


def with_room(state: ArenaState, room: int, *, obstacles: int = 0) -> ArenaState:
    """`state` with arrays for at least `room` enemies and so many obstacles to a row.

    All others are the same arrays; the same state where nothing has to grow.
    """
    wider = {}
    for name in OF_ROOM:
        array, wanted = getattr(state, name), obstacles if name == "obstacles" else room
        if wanted > array.shape[1]:
            wider[name] = np.zeros((array.shape[0], wanted, *array.shape[2:]), array.dtype)
            wider[name][:, : array.shape[1]] = array
    return state._replace(**wider) if wider else state


def room_fault(state: ArenaState, row: int, *, enemies: int, obstacles: int = 0) -> str | None:
    """Why `row` can't hold so many more; None: it can."""
    if state.enemy_count[row] + enemies > MAX_ENEMIES_OF_ROW:
        return f"a row holds {MAX_ENEMIES_OF_ROW} enemies at most, those that are down among them"
    if state.obstacle_count[row] + obstacles > MAX_OBSTACLES_OF_ROW:
        return f"a row holds {MAX_OBSTACLES_OF_ROW} obstacles at most"
    return None


def write_state(state: ArenaState, values: Mapping[str, np.ndarray]) -> None:
    """Overwrite `state` with arrays by name, which may have room for fewer things."""
    for name, array in state._asdict().items():
        if name in OF_ROOM:
            array[...] = 0
            array[:, : values[name].shape[1]] = values[name]
        else:
            array[...] = values[name]
