"""Walking of two discs in one hall, each in its own frame."""

import math

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined
from aimbot_lab.foundation.kernels.lanes import LANES, bits_of, load, spread
from aimbot_lab.worlds.arena.core.motion import (
    MOVED,
    SKIN,
    decision_reach,
    heading,
    is_move,
    slide,
    touches_enemy,
    walked,
)
from aimbot_lab.worlds.arena.core.rays import LOWEST
from aimbot_lab.worlds.arena.core.state import AT, ArenaState
from aimbot_lab.worlds.duel.core.rays import box_of
from aimbot_lab.worlds.duel.core.state import (
    EXTENT,
    HALF_X,
    HALF_Z,
    HORIZONTAL,
    MIDDLE_X,
    MIDDLE_Z,
    SLACK,
    VERTICAL,
    DuelState,
    LayoutTables,
)

ROOM = 1e-6  # m that two discs which cannot meet keep beyond their reach


@inlined
def tell_places(seats: ArenaState, home: int, away: int) -> None:
    """Write where the other stands, into both frames."""
    size = seats.parameters[home, AT.floor_size]
    for axis in range(2):
        seats.enemies[home, 0, axis] = size - seats.position[away, axis]
        seats.enemies[away, 0, axis] = size - seats.position[home, axis]


@inlined
def squared_gap(size: float, places: tuple[float, float, float, float]) -> float:
    """Squared distance of two centres, each given in its own frame: x, z, x and z.

    |c0 + c1 - (S, S)|^2, whose sums commute, so that both sides find the same bits.
    """
    x = places[0] + places[2] - size
    z = places[1] + places[3] - size
    return x * x + z * z


@inlined
def may_meet(seats: ArenaState, home: int, away: int) -> bool:
    """Whether the two discs could touch within a decision."""
    size = seats.parameters[home, AT.floor_size]
    places = (
        seats.position[home, 0],
        seats.position[home, 1],
        seats.position[away, 0],
        seats.position[away, 1],
    )
    radii = seats.parameters[home, AT.agent_radius] + seats.parameters[away, AT.agent_radius]
    reach = radii + (decision_reach(seats, home) + decision_reach(seats, away)) + ROOM
    return bool(squared_gap(size, places) <= reach * reach)


@inlined
def is_crowded(seats: ArenaState, layouts: LayoutTables, seat: int, layout: int) -> bool:
    """Whether a decision's walk could meet a box or the other, as the arena's says.

    Boxes are first looked for in single precision, all lanes at once, erring on the side of yes.
    """
    x, z = seats.position[seat, 0], seats.position[seat, 1]
    margin = decision_reach(seats, seat)
    reach = seats.parameters[seat, AT.agent_radius] + margin
    for base in range(0, layouts.box_count[layout], LANES):
        near = boxes_near(layouts, (x, z), reach, layout, base)
        while near:
            box = box_of(layouts, layout, base + LOWEST[near])
            if max(box[0] - x, x - box[2]) < reach and max(box[1] - z, z - box[3]) < reach:
                return True
            near &= near - 1
    return touches_enemy(seats, seat, x, z, margin)


@inlined
def boxes_near(
    layouts: LayoutTables, place: tuple[float, float], reach: float, layout: int, base: int
) -> int:
    """Bit k is set where box `base + k` is within `reach` of a place, and perhaps beyond."""
    extents, above = layouts.extents, EXTENT * layout
    margin = spread(np.float32(reach) + SLACK)
    gap_x = abs(load(extents, above + MIDDLE_X, base) - spread(np.float32(place[0])))
    gap_z = abs(load(extents, above + MIDDLE_Z, base) - spread(np.float32(place[1])))
    near: int = bits_of(
        (gap_x < load(extents, above + HALF_X, base) + margin)
        & (gap_z < load(extents, above + HALF_Z, base) + margin)
    )
    return near


@inlined
def walk_both(state: DuelState, layouts: LayoutTables, home: int, away: int) -> None:
    """Walk one decision by the actions held; writes places and `moved`."""
    if may_meet(state.seats, home, away):
        walk_close(state, home, away)
        return
    seats = state.seats
    for seat in (home, away):
        vertical, horizontal = int(state.held[seat, VERTICAL]), int(state.held[seat, HORIZONTAL])
        state.moved[seat] = False
        if vertical != 0 or horizontal != 0:
            along_x, along_z = heading(seats, seat, vertical, horizontal)
            crowded = is_crowded(seats, layouts, seat, state.layout[home])
            x, z = walked(seats, seat, along_x, along_z, crowded)
            state.moved[seat] = is_move(seats, seat, x, z)
            seats.position[seat, 0] = x
            seats.position[seat, 1] = z
    tell_places(seats, home, away)


@called
def walk_close(state: DuelState, home: int, away: int) -> None:
    """`walk_both` tick by tick: each slides along the other's disc where that stood before.

    Where the two would overlap after a tick, neither moves in it.
    """
    seats = state.seats
    size = seats.parameters[home, AT.floor_size]
    from_home = seats.position[home, 0], seats.position[home, 1]
    from_away = seats.position[away, 0], seats.position[away, 1]
    least = seats.parameters[home, AT.agent_radius] + seats.parameters[away, AT.agent_radius] - SKIN
    for _ in range(int(seats.parameters[home, AT.decision_period])):
        x_1, z_1 = after_tick(state, home)
        x_2, z_2 = after_tick(state, away)
        if squared_gap(size, (x_1, z_1, x_2, z_2)) < least * least:
            break  # every later tick would be the same
        seats.position[home, 0] = x_1
        seats.position[home, 1] = z_1
        seats.position[away, 0] = x_2
        seats.position[away, 1] = z_2
        tell_places(seats, home, away)
    state.moved[home] = is_away_from(seats, home, from_home)
    state.moved[away] = is_away_from(seats, away, from_away)


@inlined
def is_away_from(seats: ArenaState, seat: int, place: tuple[float, float]) -> bool:
    """Whether the agent is no longer at `place`."""
    x, z = seats.position[seat, 0] - place[0], seats.position[seat, 1] - place[1]
    return bool(x * x + z * z > MOVED * MOVED)


@inlined
def after_tick(state: DuelState, seat: int) -> tuple[float, float]:
    """Where a tick of the walk held leads, past walls, boxes and the other where it stands."""
    seats = state.seats
    x, z = seats.position[seat, 0], seats.position[seat, 1]
    vertical, horizontal = int(state.held[seat, VERTICAL]), int(state.held[seat, HORIZONTAL])
    if vertical == 0 and horizontal == 0:
        return x, z
    along_x, along_z = heading(seats, seat, vertical, horizontal)
    radius = seats.parameters[seat, AT.agent_radius]
    tick = seats.parameters[seat, AT.move_speed] * seats.parameters[seat, AT.fixed_timestep]
    thinnest = min(radius, seats.parameters[seat, AT.enemy_radius])
    splits = max(1, int(math.ceil(tick / (0.5 * thinnest))))
    high = seats.parameters[seat, AT.floor_size] - radius
    for _ in range(splits):
        next_x = min(max(x + along_x * tick / splits, radius), high)
        next_z = min(max(z + along_z * tick / splits, radius), high)
        next_x, next_z, free = slide(seats, seat, next_x, next_z, high)
        if not free or (next_x == x and next_z == z):
            break
        x, z = next_x, next_z
    return x, z
