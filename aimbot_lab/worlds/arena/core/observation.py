"""The observation: 13 numbers about target and agent, its one-hot type, enemies, a picture, rays.

Enemies have columns where units are shown, a picture where there is a camera. Rays are tags, then
distances, or what ML-Agents tells of them.

**Enemies** are those that a ray within range hits, from left to right. Columns from the first on:
of each slot metres ahead and to the right, the share of its hits that is left and whether it is a
target; then for each slot whether there is an enemy. Numbering the enemies otherwise changes
nothing that is seen: rays are looked through from left to right.

**The picture** has one ray a column of pixels, as in the first games of this kind: it finds how far
ahead the nearest wall and the nearest enemy are, and each pixel of the column then shows the
ceiling, one of these, or the floor. Pixels are square and are sampled in their middles. Shades are
whole 255ths, so that a picture of 8 bits loses nothing.
"""

import math
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.jit import called, inlined
from aimbot_lab.foundation.kernels.lanes import LANES, load, spread, store, where
from aimbot_lab.worlds.arena.core.rays import is_target, ray_count
from aimbot_lab.worlds.arena.core.reward import hide_fire_base, in_fire_base, is_hidden, time_left
from aimbot_lab.worlds.arena.core.state import (
    AT,
    BODY_HEIGHT,
    ENEMY_SLOTS,
    EYE_HEIGHT,
    NO_HIT,
    OWN,
    PERCEPTION,
    SLOT_FEATURES,
    TAG_KINDS,
    TARGET_CODES,
    WALL_HEIGHT,
    WALL_HIT,
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
    """`shade` in `channels` channels, as whole 255ths."""
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
    """`shade` as it looks from `ahead` metres away."""
    part = FAINT / (FAINT + ahead)
    return shade[0] * part, shade[1] * part, shade[2] * part


@inlined
def brightness(state: ArenaState, row: int, strip: Strip, ahead: float) -> float:
    """Brightness of the FireBase `ahead` metres away: 1 in the centre, 0.6 at the edge, 0 else."""
    radius = 0.5 * state.fire_base[row, 2]
    x = state.position[row, 0] + ahead * strip.along_x - state.fire_base[row, 0]
    z = state.position[row, 1] + ahead * strip.along_z - state.fire_base[row, 1]
    squared = x * x + z * z
    if radius <= 0.0 or squared > radius * radius:
        return 0.0
    return 1.0 - 0.4 * math.sqrt(squared) / radius


SEEN_FROM = ENEMY_SLOTS * SLOT_FEATURES  # first column that says whether there is one


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


WALL_TAG, ENEMY_TAG, NO_TAG = np.float32(0.0), np.float32(1.0), np.float32(-1.0)
ZERO, ONE = np.float32(0.0), np.float32(1.0)


@inlined
def observe(
    state: ArenaState,
    tables: ArenaTables,
    observations: Floats32,
    row: int,
    plain: bool,
    sensed: bool,
) -> None:
    """Write the observation of `row` into `observations` [B, S * D]; its rays must be cast.

    Earlier observations of the episode come first, oldest first, zeros where there were none.
    `plain` may be True where `allocate.observation_kind` says so, `sensed` must be where there is a
    picture or rays are told as ML-Agents does: as constants they make code without what is not
    there, which is faster.
    """
    older = state.history.shape[1]
    newest = observations.shape[1] - older
    for column in range(older):
        observations[row, column] = state.history[row, column]
    write_head(state, observations, row, older)
    rays_from = older + len(OWN)
    if not plain:
        if tables.recalls:
            hide_fire_base(state, observations, row, older)
        for place in range(tables.target_columns):
            is_it = state.target[row] == TARGET_CODES[place]
            observations[row, rays_from + place] = ONE if is_it else ZERO
        rays_from += tables.target_columns
        if tables.enemy_columns > 0:
            write_enemies(state, tables, observations, row, rays_from)
        rays_from += tables.enemy_columns
        if sensed and tables.camera.channels > 0:
            rays_from = write_picture(state, tables, observations, row, rays_from)
    if sensed and tables.perception:
        write_perception(state, tables, observations, row, rays_from)
    elif tables.one_hot:
        write_one_hot(state, tables, observations, row, rays_from)
    else:
        write_labels(state, tables, observations, row, rays_from, ENEMY_TAG)
    for column in range(older):
        state.history[row, column] = observations[row, column + newest]


@inlined
def forget(state: ArenaState, row: int) -> None:
    """Empty the earlier observations, for a new episode."""
    for column in range(state.history.shape[1]):
        state.history[row, column] = 0.0


@inlined
def write_head(state: ArenaState, observations: Floats32, row: int, at: int) -> None:
    """Target and agent, from column `at` on."""
    observations[row, at + OWN.target] = state.target[row]
    observations[row, at + OWN.fire_base_x] = state.fire_base[row, 0]
    observations[row, at + OWN.fire_base_y] = 0.0
    observations[row, at + OWN.fire_base_z] = state.fire_base[row, 1]
    observations[row, at + OWN.fire_base_diameter] = state.fire_base[row, 2]
    observations[row, at + OWN.in_fire_base] = 1.0 if in_fire_base(state, row) else 0.0
    observations[row, at + OWN.time_left] = time_left(state, row)
    observations[row, at + OWN.gun_ready] = 1.0 if state.gun_ticks[row] <= 0 else 0.0
    observations[row, at + OWN.agent_x] = state.position[row, 0]
    observations[row, at + OWN.agent_y] = 0.0
    observations[row, at + OWN.agent_z] = state.position[row, 1]
    observations[row, at + OWN.cos_yaw] = state.ahead[row, 1]
    observations[row, at + OWN.sin_yaw] = state.ahead[row, 0]


@inlined
def write_labels(
    state: ArenaState,
    tables: ArenaTables,
    observations: Floats32,
    row: int,
    at: int,
    enemy_tag: np.float32,
) -> None:
    """One tag per ray from column `at` on, then one distance per ray."""
    limit = np.float32(state.parameters[row, AT.rays_range])
    rays = ray_count(tables)
    whole = rays - rays % LANES  # more lanes would write into what follows
    for ray in range(0, whole, LANES):
        distance = load(state.ray_distance, row, ray)
        seen = distance <= spread(limit)
        is_wall = load(state.ray_hit, row, ray) == spread(np.int32(WALL_HIT))
        tag = where(is_wall, spread(WALL_TAG), spread(enemy_tag))
        store(observations, row, at + ray, where(seen, tag, spread(NO_TAG)))
        store(observations, row, at + rays + ray, where(seen, distance, spread(ZERO)))
    for ray in range(whole, rays):
        near = state.ray_distance[row, ray] <= limit
        kind = WALL_TAG if state.ray_hit[row, ray] == WALL_HIT else enemy_tag
        observations[row, at + ray] = kind if near else NO_TAG
        observations[row, at + rays + ray] = state.ray_distance[row, ray] if near else ZERO


@inlined
def write_one_hot(
    state: ArenaState, tables: ArenaTables, observations: Floats32, row: int, at: int
) -> None:
    """Three numbers per ray, all 0 where nothing was hit, then one distance per ray."""
    limit = np.float32(state.parameters[row, AT.rays_range])
    distances_at = at + TAG_KINDS * ray_count(tables)
    for ray in range(ray_count(tables)):
        seen = state.ray_distance[row, ray] <= limit
        hit = state.ray_hit[row, ray] if seen else NO_HIT
        first = at + TAG_KINDS * ray
        observations[row, first] = ONE if hit == WALL_HIT else ZERO
        observations[row, first + 1] = ONE if hit >= 0 else ZERO
        observations[row, first + 2] = ZERO
        observations[row, distances_at + ray] = state.ray_distance[row, ray] if seen else ZERO


@called
def write_perception(
    state: ArenaState, tables: ArenaTables, observations: Floats32, row: int, at: int
) -> None:
    """Write five numbers a ray from column `at` on; the rays must be cast.

    A one-hot tag (wall, enemy, player), 1 where the ray met nothing, the share of its length at
    which it met something, 1 where it did not. The middle ray comes first, then the next one to
    its right, to its left, and so on (RayPerceptionSensor.cs of com.unity.ml-agents).
    """
    limit = np.float32(state.parameters[row, AT.rays_range])
    rays = ray_count(tables)
    for place in range(rays):
        step = (place + 1) // 2
        ray = rays // 2 + (step if place % 2 == 1 else -step)
        seen = state.ray_distance[row, ray] <= limit
        is_wall = state.ray_hit[row, ray] == WALL_HIT
        first = at + PERCEPTION * place
        observations[row, first] = ONE if seen and is_wall else ZERO
        observations[row, first + 1] = ONE if seen and not is_wall else ZERO
        observations[row, first + 2] = ZERO
        observations[row, first + 3] = ZERO if seen else ONE
        observations[row, first + 4] = state.ray_distance[row, ray] / limit if seen else ONE
