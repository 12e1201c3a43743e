"""What the oracle's agent sees: rays met with walls and discs one by one, in plain float64."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Point = tuple[float, float]  # m, x and z
Box = tuple[float, float, float, float]  # m, min x, min z, max x, max z
Wall = tuple[float, float, float, float]  # m, x and z of one end, then the way to the other end
WALL_TAG, ENEMY_TAG, NOTHING_TAG = 0, 1, -1


class Sight(NamedTuple):
    tag: int  # WALL_TAG or ENEMY_TAG
    distance: float  # m
    enemy: int  # index, -1 for a wall


@dataclass(frozen=True)
class Fan:
    """The rays: angles to the view's centre line in rad, positive to the right."""

    angles: tuple[float, ...]
    one_hot: bool


def fan_of(rays, view_angle: float, middle_share: float) -> Fan:
    """The fan with the ray settings' counts over that view in degrees, left to right."""
    half_view = math.radians(view_angle) / 2
    half_middle = half_view * middle_share
    gaps = (rays.middle_count - 1) // 2
    right = [half_middle * k / gaps for k in range(1, gaps + 1)]
    right += [
        half_middle + (half_view - half_middle) * k / rays.side_count
        for k in range(1, rays.side_count + 1)
    ]
    left = [-angle for angle in reversed(right)]
    return Fan(angles=(*left, 0.0, *right), one_hot=rays.tags == "one_hot")


def walls_of(floor_size: float, boxes: Sequence[Box]) -> tuple[Wall, ...]:
    """The sides of the floor and of every box."""
    walls: list[Wall] = []
    for min_x, min_z, max_x, max_z in [(0.0, 0.0, floor_size, floor_size), *boxes]:
        width, depth = max_x - min_x, max_z - min_z
        walls.append((min_x, min_z, width, 0.0))
        walls.append((min_x, max_z, width, 0.0))
        walls.append((min_x, min_z, 0.0, depth))
        walls.append((max_x, min_z, 0.0, depth))
    return tuple(walls)


def wall_distance(eye: Point, angle: float, walls: Sequence[Wall]) -> float:
    """How far a ray gets before the first wall, in m; infinite if it meets none.

    Solves eye + t * way = end + s * side for t and s by Cramer's rule.
    """
    way_x, way_z = math.sin(angle), math.cos(angle)
    nearest = math.inf
    for end_x, end_z, side_x, side_z in walls:
        cross = way_x * side_z - way_z * side_x
        if cross == 0.0:
            continue
        gap_x, gap_z = end_x - eye[0], end_z - eye[1]
        t = (gap_x * side_z - gap_z * side_x) / cross
        s = (gap_x * way_z - gap_z * way_x) / cross
        if 0.0 <= s <= 1.0 and 0.0 <= t < nearest:
            nearest = t
    return nearest


def disc_distance(eye: Point, angle: float, centre: Point, radius: float) -> float:
    """How far a ray gets before a disc, in m; 0 from within, infinite if it misses."""
    gap_x, gap_z = centre[0] - eye[0], centre[1] - eye[1]
    away = math.hypot(gap_x, gap_z)
    if away <= radius:
        return 0.0
    beside = math.atan2(gap_x, gap_z) - angle  # angle between the ray and the centre
    across = away * math.sin(beside)
    if math.cos(beside) <= 0.0 or abs(across) > radius:
        return math.inf
    return away * math.cos(beside) - math.sqrt(radius**2 - across**2)


def distance_to_half_line(eye: Point, angle: float, point: Point) -> float:
    """Distance of a point from the line that starts at the eye and goes on ahead, in m."""
    gap_x, gap_z = point[0] - eye[0], point[1] - eye[1]
    away = math.hypot(gap_x, gap_z)
    beside = math.atan2(gap_x, gap_z) - angle
    return away * abs(math.sin(beside)) if math.cos(beside) > 0.0 else away


def sight(episode, angle: float, enemy_radius: float) -> Sight:
    """The nearest thing in a direction; a wall before an enemy at the same distance."""
    eye = (episode.x, episode.z)
    nearest = Sight(WALL_TAG, wall_distance(eye, angle, episode.walls), -1)
    for index, centre in enumerate(episode.enemies):
        if episode.hits_left[index] > 0:
            distance = disc_distance(eye, angle, centre, enemy_radius)
            if distance < nearest.distance:
                nearest = Sight(ENEMY_TAG, distance, index)
    return nearest


def enemies_in_sight(rules, episode, angle_error: float = 0.0) -> set[int]:
    """Indices of the enemies that a ray of the fan hits within its range."""
    seen = set()
    for angle in rules.fan.angles:
        found = sight(episode, episode.yaw + angle + angle_error, rules["enemy_radius"])
        if found.tag == ENEMY_TAG and found.distance <= rules["rays.range"]:
            seen.add(found.enemy)
    return seen


def ray_sights(rules, episode) -> list[Sight]:
    """What each ray would meet if it had no end, left to right."""
    return [
        sight(episode, episode.yaw + angle, rules["enemy_radius"]) for angle in rules.fan.angles
    ]


def rays_of_observation(observation, fan: Fan) -> tuple[list[int], list[float]]:
    """Tag and distance of each ray, read from an observation by the documented layout."""
    count, width = len(fan.angles), 3 if fan.one_hot else 1
    coded, distances = observation[13 : 13 + width * count], observation[13 + width * count :]
    assert len(distances) == count
    if not fan.one_hot:
        return [int(tag) for tag in coded], [float(d) for d in distances]
    tags = []
    for ray in range(count):
        one_hot = [float(number) for number in coded[3 * ray : 3 * ray + 3]]
        assert one_hot.count(0.0) + one_hot.count(1.0) == 3
        assert sum(one_hot) <= 1.0
        tags.append(one_hot.index(1.0) if 1.0 in one_hot else NOTHING_TAG)
    return tags, [float(d) for d in distances]
