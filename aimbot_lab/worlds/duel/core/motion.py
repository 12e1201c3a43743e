"""Moving, rays and shots of two players."""

import math
from typing import Any

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
from aimbot_lab.worlds.arena.core.rays import (
    LOWEST,
    NEVER,
    Box,
    aim,
    fires,
    line_to_box,
    meet_box,
    meet_enemies,
    strike,
)
from aimbot_lab.worlds.arena.core.rays import MISSED as LINE_MISSED
from aimbot_lab.worlds.arena.core.state import AT, ArenaState
from aimbot_lab.worlds.duel.core.state import (
    DAMAGE,
    EXTENT,
    HALF_X,
    HALF_Z,
    HIT,
    HORIZONTAL,
    MIDDLE_X,
    MIDDLE_Z,
    MISSED,
    NO_SHOT,
    SHOOT,
    SLACK,
    VERTICAL,
    DuelState,
    Floats32,
    LayoutTables,
)


@inlined
def cast_duel_rays(
    seats: ArenaState, layouts: LayoutTables, scratch: Floats32, seat: int, layout: int
) -> None:
    """Write `ray_distance` and `ray_hit` of `seat`, as the arena's `cast_rays` does.

    Which boxes can be in view is found in single precision, all lanes at once, from the table of
    layouts that all seats share. It errs on the side of yes, so distances are the same to the bit.
    """
    sine = seats.ahead[seat, 0]
    cosine = seats.ahead[seat, 1]
    aim(seats, scratch, seat)
    for base in range(0, layouts.box_count[layout], LANES):
        seen = boxes_in_view(seats, layouts, seat, layout, base)
        while seen:
            meet_box(seats, scratch, seat, box_of(layouts, layout, base + LOWEST[seen]))
            seen &= seen - 1
    meet_enemies(seats, scratch, seat, sine, cosine)


@inlined
def box_of(layouts: LayoutTables, layout: int, k: int) -> Box:
    """Box `k` of `layout`, in metres: least x and z, greatest x and z."""
    box = layouts.boxes
    return box[layout, k, 0], box[layout, k, 1], box[layout, k, 2], box[layout, k, 3]


@inlined
def boxes_in_view(
    seats: ArenaState, layouts: LayoutTables, seat: int, layout: int, base: int
) -> int:
    """Bit k is set where box `base + k` can meet a ray, and perhaps where it can't.

    It can unless it lies wholly behind the agent or outside an edge of the view, widened by a
    slack. Lanes without a box have half sides so negative that they are never in view.
    """
    extents, above = layouts.extents, EXTENT * layout
    x = load(extents, above + MIDDLE_X, base) - spread(np.float32(seats.position[seat, 0]))
    z = load(extents, above + MIDDLE_Z, base) - spread(np.float32(seats.position[seat, 1]))
    half_x = load(extents, above + HALF_X, base) + spread(SLACK)
    half_z = load(extents, above + HALF_Z, base) + spread(SLACK)
    sine, cosine = np.float32(seats.ahead[seat, 0]), np.float32(seats.ahead[seat, 1])
    edge_cos, edge_sin = np.float32(seats.view_edge[seat, 0]), np.float32(seats.view_edge[seat, 1])
    # Inward normals of the view's edges: the edge's direction turned towards the middle.
    left = edge_sin * sine + edge_cos * cosine, edge_sin * cosine - edge_cos * sine
    right = edge_sin * sine - edge_cos * cosine, edge_sin * cosine + edge_cos * sine
    seen: int = bits_of(
        is_inside((sine, cosine), (x, z), (half_x, half_z))
        & is_inside(left, (x, z), (half_x, half_z))
        & is_inside(right, (x, z), (half_x, half_z))
    )
    return seen


@inlined
def is_inside(normal: tuple[np.float32, np.float32], middle: Any, half: Any) -> Any:
    """Mask of the boxes that reach the side of a line through the agent that `normal` shows."""
    along = middle[0] * spread(normal[0]) + middle[1] * spread(normal[1])
    reach = half[0] * spread(abs(normal[0])) + half[1] * spread(abs(normal[1]))
    return along + reach >= spread(np.float32(0.0))


@inlined
def line_to_box_ahead(seats: ArenaState, layouts: LayoutTables, seat: int, layout: int) -> float:
    """Metres along the view's centre to the nearest box, or NEVER, as the arena's gun has it.

    Which boxes the line can meet is found in single precision, erring on the side of yes.
    """
    sine, cosine = seats.ahead[seat, 0], seats.ahead[seat, 1]
    from_x, from_z = seats.position[seat, 0], seats.position[seat, 1]
    nearest = NEVER
    for base in range(0, layouts.box_count[layout], LANES):
        met = boxes_on_line(seats, layouts, seat, layout, base)
        while met:
            box = box_of(layouts, layout, base + LOWEST[met])
            nearest = min(nearest, line_to_box(from_x, from_z, sine, cosine, box))
            met &= met - 1
    return nearest


@inlined
def boxes_on_line(
    seats: ArenaState, layouts: LayoutTables, seat: int, layout: int, base: int
) -> int:
    """Bit k is set where the line ahead can meet box `base + k`, and perhaps where it can't."""
    extents, above = layouts.extents, EXTENT * layout
    x = load(extents, above + MIDDLE_X, base) - spread(np.float32(seats.position[seat, 0]))
    z = load(extents, above + MIDDLE_Z, base) - spread(np.float32(seats.position[seat, 1]))
    half_x = load(extents, above + HALF_X, base) + spread(SLACK)
    half_z = load(extents, above + HALF_Z, base) + spread(SLACK)
    sine, cosine = np.float32(seats.ahead[seat, 0]), np.float32(seats.ahead[seat, 1])
    across = abs(x * spread(cosine) - z * spread(sine))
    wide = half_x * spread(abs(cosine)) + half_z * spread(abs(sine))
    ahead = is_inside((sine, cosine), (x, z), (half_x, half_z))
    met: int = bits_of((across <= wide) & ahead)
    return met


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


@inlined
def shoot_both(state: DuelState, layouts: LayoutTables, home: int, away: int) -> None:
    """Judge both shots by the poses after the walk, then wound: both may fall at once."""
    for seat in (home, away):
        state.shot[seat] = NO_SHOT
        if fires(state.seats, seat, int(state.held[seat, SHOOT])):
            reach = line_to_box_ahead(state.seats, layouts, seat, state.layout[home])
            state.shot[seat] = HIT if strike(state.seats, seat, reach) != LINE_MISSED else MISSED
    wound(state, home, away)
    wound(state, away, home)
    tell_health(state, home, away)


@inlined
def wound(state: DuelState, seat: int, other: int) -> None:
    """What the shot of `other` does to `seat`."""
    state.hit_from[seat, 0] = 0.0
    state.hit_from[seat, 1] = 0.0
    if state.shot[other] == HIT:
        state.health[seat] = max(state.health[seat] - int(state.traits[other, DAMAGE]), 0)
        seats = state.seats
        x = seats.enemies[seat, 0, 0] - seats.position[seat, 0]
        z = seats.enemies[seat, 0, 1] - seats.position[seat, 1]
        metres = math.sqrt(x * x + z * z)
        sine, cosine = seats.ahead[seat, 0], seats.ahead[seat, 1]
        state.hit_from[seat, 0] = (x * sine + z * cosine) / metres
        state.hit_from[seat, 1] = (x * cosine - z * sine) / metres


@inlined
def tell_health(state: DuelState, home: int, away: int) -> None:
    """Write each one's health as the hits that its opponent has left."""
    state.seats.enemy_hits_left[home, 0] = state.health[away]
    state.seats.enemy_hits_left[away, 0] = state.health[home]
