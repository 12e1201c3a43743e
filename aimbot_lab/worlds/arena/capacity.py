"""How many enemies find a free place on the floor.

Where the discs that stand already leave a tenth of the places, a thousand draws find a free one
but once in 10^45.
"""

from collections.abc import Mapping
from math import pi

import numpy as np

from aimbot_lab.foundation.kernels import sampler_kinds
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE, ArenaState, ScenarioTables

TAKEN_SHARE = 0.9  # of the places, that may be taken


def most_free_enemies(floor_size: float, enemy_radius: float, agent_radius: float) -> int:
    """Enemies that surely find a place in an empty hall."""
    return _most(floor_size, enemy_radius, agent_radius, taken=0.0)


def most_bystanders(floor_size: float, enemy_radius: float, agent_radius: float) -> int:
    """Enemies that surely find a place beside a target block."""
    side = BLOCK_SIZE + 2.0 * (enemy_radius + 2.0 * agent_radius)
    return _most(floor_size, enemy_radius, agent_radius, taken=side * side)


def _most(floor_size: float, enemy_radius: float, agent_radius: float, *, taken: float) -> int:
    span = floor_size - 2.0 * enemy_radius
    taken += pi * (enemy_radius + agent_radius) ** 2
    left = TAKEN_SHARE * span * span - taken
    return max(0, 1 + int(left / (pi * (2.0 * enemy_radius) ** 2))) if left > 0 else 0


OF_ENEMIES = ("enemies", "enemy_hits_left", "enemy_is_target")  # [B, E, ...]
OF_ROOM = (*OF_ENEMIES, "obstacles")  # what grows
MAX_ENEMIES_OF_ROW = core.MAX_ENEMIES + core.MAX_PLACED
MAX_OBSTACLES_OF_ROW = 1024


def enemy_room(scenario: ScenarioTables) -> int:
    """Most enemies that an episode of this scenario has; a target block's at least."""
    free, beside = (_highest(scenario, k) for k in (core.AT.free_enemies, core.AT.bystanders))
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
