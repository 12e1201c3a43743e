"""The picture that an agent sees ahead of it: walls, obstacles, enemies, floor and FireBase.

One ray a column of pixels, as in the first games of this kind: it finds how far ahead the nearest
wall and the nearest enemy are, and each pixel of the column then shows the ceiling, one of these,
or the floor. Pixels are square and are sampled in their middles. Shades are whole 255ths, so that
a picture of 8 bits loses nothing.
"""

import math
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined
from aimbot_lab.worlds.arena.core.clock import is_hidden
from aimbot_lab.worlds.arena.core.state import (
    AT,
    BODY_HEIGHT,
    EYE_HEIGHT,
    WALL_HEIGHT,
    ArenaState,
    ArenaTables,
    CameraTables,
    Floats32,
)

HORIZON = 0.3  # share of the picture that lies above it
FAINT = 30.0  # m at which walls and enemies are half as bright
STEEP = 1e-12  # what stands in for a direction of 0, so that no 0 * inf appears
GREY = (0.299, 0.587, 0.114)  # luminance of red, green and blue (ITU-R BT.601)
CEILING = (20.0, 20.0, 40.0)  # shades from 0 to 255
FLOOR = (80.0, 80.0, 80.0)
OUTER_WALL = (120.0, 140.0, 170.0)
OBSTACLE = (190.0, 150.0, 90.0)
FOE = (200.0, 20.0, 20.0)
BASE = (220.0, 255.0, 120.0)  # in its centre; at its edge 0.6 of that
MOST = np.float32(255.0)
Shade = tuple[float, float, float]  # red, green, blue from 0 to 255
Tone = tuple[np.float32, np.float32, np.float32]  # 255ths, of the channels that there are


class Strip(NamedTuple):
    """What a column of pixels shows."""

    along_x: float  # m to the east for each metre ahead
    along_z: float  # m to the north for each metre ahead
    wall: float  # m ahead to the nearest wall
    outer: bool  # whether that is one of the floor's
    enemy: float  # m ahead to the nearest enemy; infinite: there is none


@called
def write_picture(
    state: ArenaState, tables: ArenaTables, observations: Floats32, row: int, at: int
) -> int:
    """Write the picture [H, W, C] of `row` from column `at` on; the column after it."""
    camera = tables.camera
    hides = tables.recalls and is_hidden(state, row)
    for column in range(camera.width):
        side = (2.0 * column + 1.0 - camera.width) / camera.width * camera.half_width
        strip = look(state, row, side)
        write_column(state, camera, observations, row, at + column * camera.channels, strip, hides)
    return at + camera.width * camera.height * camera.channels


@inlined
def write_column(
    state: ArenaState,
    camera: CameraTables,
    observations: Floats32,
    row: int,
    at: int,
    strip: Strip,
    hides: bool,
) -> None:
    """Write the column of pixels of `strip`, whose uppermost one is at `at`.

    A pixel's `slope` is how many metres its line falls for each metre ahead.
    """
    channels = camera.channels
    wall = tone(faded(OUTER_WALL if strip.outer else OBSTACLE, strip.wall), channels)
    foe = tone(faded(FOE, min(strip.enemy, strip.wall)), channels)
    ceiling, floor = tone(CEILING, channels), tone(FLOOR, channels)
    pixel = 2.0 * camera.half_width / camera.width
    for line in range(camera.height):
        slope = (line + 0.5 - HORIZON * camera.height) * pixel
        if (
            strip.enemy < strip.wall
            and EYE_HEIGHT - BODY_HEIGHT <= slope * strip.enemy <= EYE_HEIGHT
        ):
            shown = foe
        elif slope * strip.wall > EYE_HEIGHT:
            part = 0.0 if hides else brightness(state, row, strip, EYE_HEIGHT / slope)
            shown = floor
            if part > 0.0:
                shown = tone((BASE[0] * part, BASE[1] * part, BASE[2] * part), channels)
        else:
            shown = ceiling if slope * strip.wall < EYE_HEIGHT - WALL_HEIGHT else wall
        first = at + line * camera.width * channels
        for channel in range(channels):
            observations[row, first + channel] = shown[channel]


@inlined
def tone(shade: Shade, channels: int) -> Tone:
    """`shade` in so many channels, as whole 255ths."""
    if channels == 1:
        grey = whole(GREY[0] * shade[0] + GREY[1] * shade[1] + GREY[2] * shade[2])
        return grey, grey, grey
    return whole(shade[0]), whole(shade[1]), whole(shade[2])


@inlined
def whole(shade: float) -> np.float32:
    """A shade from 0 to 255 as the nearest 255th."""
    return np.float32(int(shade + 0.5)) / MOST


@inlined
def look(state: ArenaState, row: int, side: float) -> Strip:
    """What lies where each metre ahead leads `side` metres to the right."""
    sine, cosine = state.ahead[row, 0], state.ahead[row, 1]
    along_x = sine + side * cosine
    along_z = cosine - side * sine
    along_x = STEEP if along_x == 0.0 else along_x
    along_z = STEEP if along_z == 0.0 else along_z
    x, z = state.position[row, 0], state.position[row, 1]
    floor = state.parameters[row, AT.floor_size]
    rim = min(
        ((floor if along_x > 0.0 else 0.0) - x) / along_x,
        ((floor if along_z > 0.0 else 0.0) - z) / along_z,
    )
    wall = rim
    for k in range(state.obstacle_count[row]):
        wall = min(wall, to_box(state, row, k, along_x, along_z))
    enemy = math.inf
    for k in range(state.enemy_count[row]):
        if state.enemy_hits_left[row, k] > 0:
            enemy = min(enemy, to_disc(state, row, k, along_x, along_z))
    return Strip(along_x, along_z, wall, wall == rim, enemy)


@inlined
def to_box(state: ArenaState, row: int, k: int, along_x: float, along_z: float) -> float:
    """Metres ahead to obstacle `k` (slab method); infinite where it is missed."""
    x_1 = (state.obstacles[row, k, 0] - state.position[row, 0]) / along_x
    x_2 = (state.obstacles[row, k, 2] - state.position[row, 0]) / along_x
    z_1 = (state.obstacles[row, k, 1] - state.position[row, 1]) / along_z
    z_2 = (state.obstacles[row, k, 3] - state.position[row, 1]) / along_z
    near = max(min(x_1, x_2), min(z_1, z_2))
    far = min(max(x_1, x_2), max(z_1, z_2))
    return near if near <= far and near > 0.0 else math.inf


@inlined
def to_disc(state: ArenaState, row: int, k: int, along_x: float, along_z: float) -> float:
    """Metres ahead to enemy `k`; infinite where it is missed.

    With c the centre and d the line, t d meets the circle where |d|^2 t^2 - 2 (c . d) t + |c|^2 =
    r^2.
    """
    x = state.enemies[row, k, 0] - state.position[row, 0]
    z = state.enemies[row, k, 1] - state.position[row, 1]
    radius = state.parameters[row, AT.enemy_radius]
    squared = along_x * along_x + along_z * along_z
    along = x * along_x + z * along_z
    across = x * along_z - z * along_x
    rest = radius * radius * squared - across * across
    if rest < 0.0:
        return math.inf
    near = (along - math.sqrt(rest)) / squared
    return near if near > 0.0 else math.inf


@inlined
def faded(shade: Shade, ahead: float) -> Shade:
    """`shade` as it looks from so many metres."""
    part = FAINT / (FAINT + ahead)
    return shade[0] * part, shade[1] * part, shade[2] * part


@inlined
def brightness(state: ArenaState, row: int, strip: Strip, ahead: float) -> float:
    """Of the FireBase so many metres ahead: 1 in its centre, 0.6 at its edge, 0 outside."""
    radius = 0.5 * state.fire_base[row, 2]
    x = state.position[row, 0] + ahead * strip.along_x - state.fire_base[row, 0]
    z = state.position[row, 1] + ahead * strip.along_z - state.fire_base[row, 1]
    squared = x * x + z * z
    if radius <= 0.0 or squared > radius * radius:
        return 0.0
    return 1.0 - 0.4 * math.sqrt(squared) / radius
