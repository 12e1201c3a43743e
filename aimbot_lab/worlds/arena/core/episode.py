"""How an episode begins and how it ends."""

from aimbot_lab.foundation.kernels.draw_parameters import draw_parameters
from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.rng import uniform_index, weighted_index
from aimbot_lab.worlds.arena.core.clock import decision_seconds
from aimbot_lab.worlds.arena.core.gun import is_target
from aimbot_lab.worlds.arena.core.motion import look_ahead
from aimbot_lab.worlds.arena.core.observation import forget
from aimbot_lab.worlds.arena.core.placement import (
    clear_floor,
    keep_on_floor,
    place_agent_anywhere,
    place_block,
    place_bystanders,
    place_free_enemies,
)
from aimbot_lab.worlds.arena.core.rays import spread_fan
from aimbot_lab.worlds.arena.core.reward import distance_to_fire_base
from aimbot_lab.worlds.arena.core.state import (
    AT,
    LOST,
    OF_BLOCKS,
    SUMS,
    TARGET,
    WON,
    ArenaState,
    ArenaTables,
    EpisodeLog,
)


@inlined
def begin_episode(state: ArenaState, tables: ArenaTables, row: int) -> None:
    """Draw the next episode of `row` from the scenario in force and set it up."""
    state.scenario[row] = tables.scenario.number[0]
    number = tables.rows.first + row
    state.order[row] = state.clock[0] * tables.rows.total + number
    state.episode[row] += 1
    draw_parameters(state, tables.scenario, row, number)
    clear_counters(state, row)
    forget(state, row)
    clear_floor(state, row)
    keep_on_floor(state, row)
    spread_fan(state, tables, row)
    look_ahead(state, row)
    target = weighted_index(state.streams, row, tables.scenario.target_weights)
    state.target[row] = target
    state.difficulty[row] = 0
    if target == TARGET.free:
        place_agent_anywhere(state, row)
        place_free_enemies(state, row)
    elif target in OF_BLOCKS:
        weights = tables.scenario.difficulty_weights[target]
        level = weighted_index(state.streams, row, weights) + 1
        state.difficulty[row] = level
        first = tables.presets.kind_first[target, level]
        count = tables.presets.kind_count[target, level]
        place_block(state, tables, row, first + uniform_index(state.streams, row, count))
        place_bystanders(state, row)


@inlined
def clear_counters(state: ArenaState, row: int) -> None:
    """Set clock, gun, spin window and the terms' sums to a beginning's."""
    state.decisions[row] = 0
    state.gun_ticks[row] = 0
    state.spin_sum[row] = 0
    for k in range(state.spin_turns.shape[1]):
        state.spin_turns[row, k] = 0
    for k in range(SUMS):
        state.terms[row, k] = 0.0


@inlined
def is_won(state: ArenaState, row: int) -> bool:
    """Whether the target is reached in the present state."""
    if state.target[row] == TARGET.goto:
        return distance_to_fire_base(state, row) <= state.parameters[row, AT.goto_win_radius]
    if state.target[row] == TARGET.stay:
        return False
    for k in range(state.enemy_count[row]):
        if state.enemy_hits_left[row, k] > 0 and is_target(state, row, k):
            return False
    return True


@inlined
def record_end(state: ArenaState, log: EpisodeLog, row: int, won: bool) -> None:
    """Keep how the episode of `row` ended, before its reset overwrites it."""
    log.outcome[row] = WON if won else LOST
    log.target[row] = state.target[row]
    log.difficulty[row] = state.difficulty[row]
    log.length[row] = state.decisions[row]
    log.seconds[row] = state.decisions[row] * decision_seconds(state, row)
    log.order[row] = state.order[row]
    log.scenario[row] = state.scenario[row]
    for k in range(SUMS):
        log.terms[row, k] = state.terms[row, k]
