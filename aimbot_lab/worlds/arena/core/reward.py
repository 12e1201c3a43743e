"""The reward of a decision, term by term, and the clock that ends an episode.

Formulas are from Aimbot-ParallelEnv's README. Every function of a term returns it weighted, for the
pose after the decision. Time is counted in decisions. What an agent has to recall is held while it
sees the FireBase, which then is hidden.
"""

import math
from typing import NamedTuple

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.worlds.arena.core.rays import (
    HIT_TARGET,
    MISSED,
    NEVER,
    WORD,
    detected_enemies,
    line_to_obstacle,
)
from aimbot_lab.worlds.arena.core.state import (
    AT,
    OWN,
    SPIN_UNIT,
    TARGET,
    TERM_OF,
    ArenaState,
    ArenaTables,
    Bools,
    Floats32,
)

ROUNDING = 1e-6  # of a decision, that a division may lack


@inlined
def decision_seconds(state: ArenaState, row: int) -> float:
    """Seconds that one decision takes."""
    return state.parameters[row, AT.decision_period] * state.parameters[row, AT.fixed_timestep]


@inlined
def is_over(state: ArenaState, row: int) -> bool:
    """Whether another decision would take longer than the limit; never in Stay."""
    if state.target[row] == TARGET.stay:
        return False
    limit = state.parameters[row, AT.time_limit] / decision_seconds(state, row)
    return state.decisions[row] >= int(limit + ROUNDING)


@inlined
def time_left(state: ArenaState, row: int) -> float:
    """Seconds until the episode is lost, 0 once it is; stands still in Stay."""
    if state.target[row] == TARGET.stay:
        return state.parameters[row, AT.time_limit]
    if is_over(state, row):
        return 0.0
    gone = state.decisions[row] * decision_seconds(state, row)
    return max(state.parameters[row, AT.time_limit] - gone, 0.0)


@inlined
def is_held(state: ArenaState, row: int) -> bool:
    """Whether the agent of `row` stands still in its next decision, whatever it does."""
    limit = state.parameters[row, AT.recall_seconds] / decision_seconds(state, row)
    return state.decisions[row] < limit - ROUNDING


@inlined
def is_hidden(state: ArenaState, row: int) -> bool:
    """Whether the FireBase is hidden from the agent of `row`, after it was shown."""
    return state.parameters[row, AT.recall_seconds] > 0.0 and not is_held(state, row)


@inlined
def hide_fire_base(state: ArenaState, observations: Floats32, row: int, at: int) -> None:
    """Empty the columns about the FireBase where it was shown; those of `row` begin `at`."""
    if is_hidden(state, row):
        for column in range(at + OWN.fire_base_x, at + OWN.in_fire_base + 1):
            observations[row, column] = 0.0


@kernel
def write_held(state: ArenaState, held: Bools) -> None:
    """Write `held` [B], whether the agent of each row stands still in its next decision."""
    for row in range(held.size):
        held[row] = is_held(state, row)


FULL_FACING = 2.0  # facing reward with the enemy on the line


class Deed(NamedTuple):
    """What an agent did in one decision."""

    distance_before: float  # m to the FireBase centre
    mouse: float  # clipped
    moved: bool
    fired: bool
    hit: int  # MISSED also where nothing was fired


@inlined
def book(state: ArenaState, row: int, weight: int, earned: float) -> float:
    """What a term `earned`, added to its sum over the episode; `weight` is its parameter."""
    state.terms[row, TERM_OF[weight]] += earned
    return earned


@inlined
def reward_for(state: ArenaState, tables: ArenaTables, row: int, deed: Deed) -> float:
    """What the deed earned, result apart, booked term by term; the rays must be cast."""
    reward = book(state, row, AT.rewards_spin_penalty, spin_term(state, row, deed.mouse))
    if deed.moved:
        weight = AT.rewards_move_penalty
        reward += book(state, row, weight, state.parameters[row, weight])
    if deed.hit != MISSED:
        weight = AT.rewards_target_hit if deed.hit == HIT_TARGET else AT.rewards_non_target_hit
        reward += book(state, row, weight, state.parameters[row, weight])
    weight, earned = target_term(state, tables, row, deed)
    return reward + book(state, row, weight, earned)


@inlined
def target_term(state: ArenaState, tables: ArenaTables, row: int, deed: Deed) -> tuple[int, float]:
    """(weight, value) of the term that the present target earns."""
    if state.target[row] == TARGET.free:
        return AT.rewards_facing, facing_term(state, tables, row)
    if state.target[row] == TARGET.goto:
        return goto_terms(state, row, deed.distance_before)
    if state.target[row] == TARGET.attack:
        return attack_terms(state, row, deed.fired)
    return AT.rewards_facing, 0.0


@inlined
def distance_to_fire_base(state: ArenaState, row: int) -> float:
    """Metres from the agent to the FireBase centre."""
    x = state.fire_base[row, 0] - state.position[row, 0]
    z = state.fire_base[row, 1] - state.position[row, 1]
    return math.sqrt(x * x + z * z)


@inlined
def in_fire_base(state: ArenaState, row: int) -> bool:
    """Whether the agent's centre is in the closed FireBase circle; never where there is none."""
    diameter = state.fire_base[row, 2]
    return diameter > 0.0 and distance_to_fire_base(state, row) <= 0.5 * diameter


@inlined
def spin_term(state: ArenaState, row: int, mouse: float) -> float:
    """-rate |mouse| while the window's net turn S stays under the threshold, else -S."""
    turned = abs(state.spin_sum[row] * SPIN_UNIT) * state.parameters[row, AT.mouse_factor]
    weight = state.parameters[row, AT.rewards_spin_penalty]
    if turned < state.parameters[row, AT.spin_threshold]:
        return -weight * state.parameters[row, AT.spin_rate] * abs(mouse)
    return -weight * turned


@inlined
def distance_to_view_line(state: ArenaState, row: int, x: float, z: float) -> float:
    """Metres from a point, given relative to the agent, to the half-line ahead of the agent."""
    sine = state.ahead[row, 0]
    cosine = state.ahead[row, 1]
    if x * sine + z * cosine >= 0.0:
        return abs(x * cosine - z * sine)
    return math.sqrt(x * x + z * z)


@inlined
def facing_term(state: ArenaState, tables: ArenaTables, row: int) -> float:
    """2 with a detected enemy within `facing_distance` D of the view line, else 1 / sqrt(D / 2).

    0 without a detected enemy.
    """
    nearest = NEVER
    for base in range(0, state.enemy_count[row], WORD):
        found = detected_enemies(state, tables, row, base)
        for k in range(base, min(base + WORD, state.enemy_count[row])):
            if found & (1 << (k - base)):
                x = state.enemies[row, k, 0] - state.position[row, 0]
                z = state.enemies[row, k, 1] - state.position[row, 1]
                nearest = min(nearest, distance_to_view_line(state, row, x, z))
    return facing_by_distance(state, row, nearest)


@inlined
def facing_by_distance(state: ArenaState, row: int, nearest: float) -> float:
    """The facing term where the view line passes `nearest` metres from a detected enemy.

    `nearest` is NEVER where none is detected.
    """
    if nearest == NEVER:
        return 0.0
    if nearest <= state.parameters[row, AT.facing_distance]:
        return state.parameters[row, AT.rewards_facing] * FULL_FACING
    return state.parameters[row, AT.rewards_facing] / math.sqrt(0.5 * nearest)


@inlined
def approach_term(state: ArenaState, row: int, distance_before: float) -> float:
    """Reward per metre gained on the FireBase centre."""
    gained = distance_before - distance_to_fire_base(state, row)
    return state.parameters[row, AT.rewards_distance] * gained


@inlined
def view_crosses_fire_base(state: ArenaState, row: int) -> bool:
    """Whether the half-line ahead meets the FireBase circle (before an obstacle, if so set)."""
    x = state.fire_base[row, 0] - state.position[row, 0]
    z = state.fire_base[row, 1] - state.position[row, 1]
    radius = 0.5 * state.fire_base[row, 2]
    away = distance_to_view_line(state, row, x, z)
    if away > radius:
        return False
    if state.parameters[row, AT.line_stopped_by_obstacles] == 0.0:
        return True
    if x * x + z * z <= radius * radius:
        return True
    sine = state.ahead[row, 0]
    cosine = state.ahead[row, 1]
    entry = x * sine + z * cosine - math.sqrt(max(radius * radius - away * away, 0.0))
    return entry <= line_to_obstacle(state, row, sine, cosine)


@inlined
def goto_terms(state: ArenaState, row: int, distance_before: float) -> tuple[int, float]:
    """(weight, value) of the term that Goto earns besides the common ones."""
    if in_fire_base(state, row):
        return AT.rewards_in_area, state.parameters[row, AT.rewards_in_area]
    return AT.rewards_distance, approach_term(state, row, distance_before)


@inlined
def attack_terms(state: ArenaState, row: int, fired: bool) -> tuple[int, float]:
    """(weight, value) of the term that Attack earns besides the common ones."""
    weight = AT.rewards_suppressive if fired else AT.rewards_facing_area
    if not view_crosses_fire_base(state, row):
        return weight, 0.0
    return weight, state.parameters[row, weight]
