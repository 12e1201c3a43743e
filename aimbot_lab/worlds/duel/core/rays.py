"""The arena's rays, with boxes that are looked up by their layout."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.foundation.kernels.lanes import LANES, bits_of, load, spread
from aimbot_lab.worlds.arena.core.gun import NEVER, line_to_box
from aimbot_lab.worlds.arena.core.rays import LOWEST, Box, aim, meet_box, meet_enemies
from aimbot_lab.worlds.arena.core.state import ArenaState
from aimbot_lab.worlds.duel.core.state import (
    EXTENT,
    HALF_X,
    HALF_Z,
    MIDDLE_X,
    MIDDLE_Z,
    SLACK,
    Floats32,
    LayoutTables,
)


@inlined
def cast_rays(
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
