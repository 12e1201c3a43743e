"""Enemies in an observation: those that a ray within range hits, from left to right.

Columns from the first on: of each slot metres ahead and to the right, the share of its hits that
is left and whether it is a target; then for each slot whether there is an enemy. Whoever numbers
the enemies otherwise sees the same: rays are looked through from left to right.
"""

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined
from aimbot_lab.worlds.arena.core.gun import is_target
from aimbot_lab.worlds.arena.core.rays import ray_count
from aimbot_lab.worlds.arena.core.state import (
    AT,
    ENEMY_SLOTS,
    SLOT_FEATURES,
    ArenaState,
    ArenaTables,
    Floats32,
)

SEEN_FROM = ENEMY_SLOTS * SLOT_FEATURES  # first column that says whether there is one
ONE = np.float32(1.0)


@called
def write_enemies(
    state: ArenaState, tables: ArenaTables, observations: Floats32, row: int, at: int
) -> None:
    """Write the enemies that `row` sees from column `at` on; the nearest where slots are too few.

    Where two are as near, the left one stays.
    """
    for column in range(at, at + ENEMY_SLOTS * (SLOT_FEATURES + 1)):
        observations[row, column] = 0.0
    count = 0
    for ray in range(ray_count(tables)):
        if not meets_first(state, row, ray):
            continue
        k = state.ray_hit[row, ray]
        if count == ENEMY_SLOTS:
            slot = farthest_slot(observations, row, at)
            if squared_distance(observations, row, at, slot) <= distance_to(state, row, k):
                continue
            close_gap(observations, row, at, slot)
            count -= 1
        insert(state, observations, row, at, k)
        count += 1
    for slot in range(count):
        observations[row, at + SEEN_FROM + slot] = 1.0


@inlined
def meets_first(state: ArenaState, row: int, ray: int) -> bool:
    """Whether `ray` hits an enemy within range that no ray to its left does."""
    limit = np.float32(state.parameters[row, AT.rays_range])
    hit = state.ray_hit[row, ray]
    if hit < 0 or state.ray_distance[row, ray] > limit:
        return False
    for other in range(ray):
        if state.ray_hit[row, other] == hit and state.ray_distance[row, other] <= limit:
            return False
    return True


@inlined
def seen_place(state: ArenaState, row: int, k: int) -> tuple[np.float32, np.float32]:
    """Metres from the agent to enemy `k`, ahead and to the right."""
    x = state.enemies[row, k, 0] - state.position[row, 0]
    z = state.enemies[row, k, 1] - state.position[row, 1]
    sine, cosine = state.ahead[row, 0], state.ahead[row, 1]
    return np.float32(x * sine + z * cosine), np.float32(x * cosine - z * sine)


@inlined
def distance_to(state: ArenaState, row: int, k: int) -> float:
    """Squared distance of enemy `k`, m^2, of the place as an observation rounds it."""
    ahead, right = seen_place(state, row, k)
    return float(ahead) * float(ahead) + float(right) * float(right)


@inlined
def squared_distance(observations: Floats32, row: int, at: int, slot: int) -> float:
    """Squared distance of the enemy in `slot`, m^2."""
    ahead = float(observations[row, at + SLOT_FEATURES * slot])
    right = float(observations[row, at + SLOT_FEATURES * slot + 1])
    return ahead * ahead + right * right


@inlined
def farthest_slot(observations: Floats32, row: int, at: int) -> int:
    """The slot of the farthest enemy; of several the right one."""
    farthest = 0
    for slot in range(1, ENEMY_SLOTS):
        here = squared_distance(observations, row, at, slot)
        farthest = slot if here >= squared_distance(observations, row, at, farthest) else farthest
    return farthest


@inlined
def bearing_order(ahead: float, right: float) -> float:
    """A number from -2 to 2 that grows with the bearing from left to right, without an arctangent.

    The place where the direction leaves the square |ahead| + |right| = 1.
    """
    share = right / max(abs(ahead) + abs(right), 1e-30)
    if ahead >= 0.0:
        return share
    return 2.0 - share if right >= 0.0 else -2.0 - share


@inlined
def close_gap(observations: Floats32, row: int, at: int, slot: int) -> None:
    """Take the enemy out of `slot`; those to its right move up, and the last slot is empty."""
    for column in range(at + SLOT_FEATURES * slot, at + SEEN_FROM - SLOT_FEATURES):
        observations[row, column] = observations[row, column + SLOT_FEATURES]
    for column in range(at + SEEN_FROM - SLOT_FEATURES, at + SEEN_FROM):
        observations[row, column] = 0.0


@inlined
def insert(state: ArenaState, observations: Floats32, row: int, at: int, k: int) -> None:
    """Put enemy `k` behind those to its left; taken slots have a share of hits above 0."""
    ahead, right = seen_place(state, row, k)
    order = bearing_order(float(ahead), float(right))
    slot = 0
    while slot < ENEMY_SLOTS - 1:
        column = at + SLOT_FEATURES * slot
        there = bearing_order(
            float(observations[row, column]), float(observations[row, column + 1])
        )
        if observations[row, column + 2] == 0.0 or there > order:
            break
        slot += 1
    first = at + SLOT_FEATURES * slot
    for column in range(at + SEEN_FROM - 1, first + SLOT_FEATURES - 1, -1):
        observations[row, column] = observations[row, column - SLOT_FEATURES]
    observations[row, first] = ahead
    observations[row, first + 1] = right
    share = state.enemy_hits_left[row, k] / state.parameters[row, AT.enemy_hits_to_kill]
    observations[row, first + 2] = min(np.float32(share), ONE)
    observations[row, first + 3] = 1.0 if is_target(state, row, k) else 0.0
