"""A hall through an agent's eyes: walls as columns by one ray each, the other as a billboard."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from aimbot_lab.foundation.scenes import Fighter
from aimbot_lab.foundation.world import Picture
from aimbot_lab.worlds.arena.canvas import Opaque, blended
from aimbot_lab.worlds.duel.film.palette import GROUND, INNER, NIGHT, OUTER, SKY

EYE, WALL, BODY = 1.2, 2.4, 1.8  # m
FADE, DARKEST, SIDE = 60.0, 0.6, 0.2  # m to the darkest wall, its darkness, that of walls along x
MAX_VIEW = 150.0  # degrees, beyond which a flat picture shows nothing
SPRITE = (64, 116)  # pixels
Floats = npt.NDArray[np.float64]


class WallHits(NamedTuple):
    """What each of W rays meets first."""

    distance: Floats  # [W] m
    along_x: npt.NDArray[np.bool_]  # [W] whether its face lies along x
    box: npt.NDArray[np.int64]  # [W] index of the box, -1: a wall about the hall
    along: Floats  # [W] m along the face


def seen_picture(
    viewer: Fighter,
    other: Fighter,
    boxes: Floats,
    *,
    colour: Opaque,
    size: float,
    shape: tuple[int, int],
) -> Picture:
    """What `viewer` sees of a hall of `size` m with `boxes` [K, 4], and of `other` in `colour`.

    `shape` is height and width in pixels.
    """
    width = shape[1]
    focus = width / 2 / np.tan(np.radians(min(viewer.view_angle, MAX_VIEW)) / 2)
    angles = np.arctan((np.arange(width) + 0.5 - width / 2) / focus)
    walls = cast_walls(viewer, boxes, viewer.yaw + angles, size=size)
    picture = _background(shape)
    depth = walls.distance * np.cos(angles)
    _paint_walls(picture, walls, focus / np.maximum(depth, 0.05), depth)
    _paint_other(picture, viewer, other, angles, walls.distance, colour=colour, focus=focus)
    return picture


def cast_walls(viewer: Fighter, boxes: Floats, bearing: Floats, *, size: float) -> WallHits:
    """What rays of `bearing` [W] meet of the walls of a hall of `size` m and of `boxes` [K, 4].

    Slab method; a box that the viewer stands in is not met.
    """
    way = np.stack([np.sin(bearing), np.cos(bearing)])  # [2, W]
    way = np.where(np.abs(way) < 1e-9, 1e-9, way)
    place = np.array([viewer.x, viewer.z])[:, None]
    outer = np.where(way > 0, (size - place) / way, -place / way)
    distance, along_x = outer.min(axis=0), outer[1] < outer[0]
    box = np.full(bearing.shape, -1, np.int64)
    for number, (low_x, low_z, high_x, high_z) in enumerate(boxes):
        one = (np.array([[low_x], [low_z]]) - place) / way
        two = (np.array([[high_x], [high_z]]) - place) / way
        nearest, farthest = np.minimum(one, two), np.maximum(one, two)
        near, far = nearest.max(axis=0), farthest.min(axis=0)
        met = (near <= far) & (near > 0) & (near < distance)
        distance = np.where(met, near, distance)
        along_x = np.where(met, nearest[1] > nearest[0], along_x)
        box[met] = number
    x, z = place + distance * way
    return WallHits(distance, along_x, box, np.where(along_x, x, z))


def _background(shape: tuple[int, int]) -> Picture:
    height, width = shape
    rows = np.zeros((height, 3))
    half = height // 2
    for part, (first, last) in ((slice(0, half), SKY), (slice(half, height), GROUND)):
        share = np.linspace(0.0, 1.0, len(rows[part]))[:, None]
        rows[part] = np.array(first) * (1 - share) + np.array(last) * share
    return np.repeat(rows[:, None], width, axis=1).astype(np.uint8)


def _paint_walls(picture: Picture, walls: WallHits, scale: Floats, depth: Floats) -> None:
    height = len(picture)
    base = np.where((walls.box < 0)[:, None], np.array(OUTER), np.array(INNER))
    line = walls.along - np.floor(walls.along) < 0.05  # one to each metre
    dark = np.minimum(SIDE * ~walls.along_x + 0.06 * line + DARKEST * depth / FADE, 0.9)
    tone = base * (1 - dark)[:, None] + np.array(NIGHT) * dark[:, None]
    rows = np.arange(height)[:, None] + 0.5 - height / 2
    wall = (rows > -(WALL - EYE) * scale) & (rows < EYE * scale)  # [H, W]
    np.copyto(picture, tone.astype(np.uint8)[None], where=wall[..., None])


def _paint_other(
    picture: Picture,
    viewer: Fighter,
    other: Fighter,
    angles: Floats,
    walls: Floats,
    *,
    colour: Opaque,
    focus: float,
) -> None:
    """The other in the columns whose rays meet its disc before a wall."""
    to_x, to_z = other.x - viewer.x, other.z - viewer.z
    sine, cosine = np.sin(viewer.yaw + angles), np.cos(viewer.yaw + angles)
    along, right = to_x * sine + to_z * cosine, to_x * cosine - to_z * sine
    rest = other.radius**2 - right**2
    met = (rest >= 0) & (along > 0) & (along - np.sqrt(np.maximum(rest, 0.0)) < walls)
    columns = np.flatnonzero(met)
    if not len(columns):
        return
    ahead = to_x * np.sin(viewer.yaw) + to_z * np.cos(viewer.yaw)
    scale, height = focus / max(ahead, 0.3), len(picture)
    sprite = np.array(_sprite(colour, standing=other.health > 0))
    across = (1 - right[columns] / other.radius) / 2
    taken = np.clip((across * SPRITE[0]).astype(int), 0, SPRITE[0] - 1)
    rows = np.arange(height)[:, None] + 0.5 - height / 2
    down = (rows / scale + BODY - EYE) / BODY  # 0 at its head, 1 at its feet
    inside = (down >= 0) & (down < 1)
    lines = np.clip((down * SPRITE[1]).astype(int), 0, SPRITE[1] - 1)
    drawn = sprite[lines, taken[None]]
    shown = inside & (drawn[..., 3] > 0)
    part = picture[:, columns]
    np.copyto(part, drawn[..., :3], where=shown[..., None])
    picture[:, columns] = part


def _sprite(colour: Opaque, *, standing: bool) -> Image.Image:
    """A body of that colour, as wide as the disc that rays meet; lying where it is down."""
    width, height = SPRITE
    sheet = Image.new("RGBA", SPRITE, (0, 0, 0, 0))
    ink = ImageDraw.Draw(sheet)
    dark = blended(colour, (*NIGHT, 110))
    if not standing:
        ink.ellipse((0, height - 16, width - 1, height - 1), fill=colour, outline=dark, width=2)
        return sheet
    ink.rectangle((0, 30, width - 1, 82), fill=colour)
    for left in (0, width - 9):
        ink.rectangle((left, 30, left + 8, 82), fill=dark)
    for left in (10, 36):
        ink.rectangle((left, 82, left + 17, height - 1), fill=colour)
    ink.ellipse((16, 1, 48, 33), fill=colour, outline=dark)
    for left in (22, 35):
        ink.rectangle((left, 11, left + 7, 17), fill=(255, 255, 255))
        ink.rectangle((left + 3, 12, left + 5, 17), fill=(0, 0, 0))
    ink.rectangle((18, 48, 46, 56), fill=dark)
    return sheet
