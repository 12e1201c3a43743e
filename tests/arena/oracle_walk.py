"""Where the oracle's agent walks: in small steps, each pushed out of what it is deepest in.

Of two things that it is equally deep in an obstacle pushes before an enemy, and the one that is
listed first before the others.
"""

import math
from typing import NamedTuple

from oracle_episode import Episode, Rules
from oracle_view import Box, Point

TOUCH = 1e-9  # m, overlap that counts as touching and is left alone
PUSHES = 12  # looks whether a place is free, before a small step is given up


class Overlap(NamedTuple):
    """How deep the agent's disc is in a thing, and the point that it is pushed away from."""

    depth: float  # m
    point: Point  # the nearest one of an obstacle, the centre of an enemy
    reach: float  # m, that the agent's centre is pushed to


def walked(rules: Rules, episode: Episode, vertical: int, horizontal: int) -> Point:
    """Where the agent stands after walking for one decision, tick by tick."""
    place = (episode.x, episode.z)
    ahead = {0: 0, 1: 1, 2: -1}[vertical]
    right = {0: 0, 1: 1, 2: -1}[horizontal]
    if ahead == 0 and right == 0:
        return place
    sin, cos = math.sin(episode.yaw), math.cos(episode.yaw)
    way_x, way_z = ahead * sin + right * cos, ahead * cos - right * sin
    length = math.hypot(way_x, way_z)
    parts = max(1, math.ceil(tick_step(rules) / (rules["agent_radius"] / 2)))
    stride = tick_step(rules) / parts / length
    for _ in range(rules.period * parts):
        aim = on_floor(rules, place[0] + way_x * stride, place[1] + way_z * stride)
        found = pushed_out(rules, episode, aim)
        if found is None:
            return place
        place = found
    return place


def tick_step(rules: Rules) -> float:
    return rules["move_speed"] * rules["fixed_timestep"]


def pushed_out(rules: Rules, episode: Episode, place: Point) -> Point | None:
    """A place after pushes until it is free; None where twelve looks do not find it free."""
    for _ in range(PUSHES):
        found = deepest(rules, episode, place)
        if found is None or found.depth <= TOUCH:
            return place
        if found.point == place:
            return None
        share = found.reach / math.dist(place, found.point)
        x, z = (at + (here - at) * share for here, at in zip(place, found.point, strict=True))
        place = on_floor(rules, x, z)
    return None


def deepest(rules: Rules, episode: Episode, place: Point) -> Overlap | None:
    """What the agent's disc is deepest in at a place; of equals the first. Depths may be below 0.

    Obstacles are compared by the square of the distance, and so are enemies.
    """
    radius = rules["agent_radius"]
    pairs = zip(episode.enemies, episode.hits_left, strict=True)
    standing = [centre for centre, hits in pairs if hits > 0]
    found = [
        Overlap(reach - math.sqrt(squared(place, point)), point, reach)
        for points, reach in (
            ([nearest_of_box(place, box) for box in episode.boxes], radius),
            (standing, radius + rules["enemy_radius"]),
        )
        for point in [min(points, key=lambda one: squared(place, one), default=None)]
        if point is not None
    ]
    return max(found, key=lambda one: one.depth, default=None)


def squared(place: Point, point: Point) -> float:
    return (place[0] - point[0]) ** 2 + (place[1] - point[1]) ** 2


def is_free(rules: Rules, episode: Episode, place: Point, let_be: float = TOUCH) -> bool:
    """Whether the agent's disc overlaps nothing by more."""
    found = deepest(rules, episode, place)
    return on_floor(rules, *place) == place and (found is None or found.depth <= let_be)


def nearest_of_box(place: Point, box: Box) -> Point:
    """The point of a box nearest to a place; the place itself inside."""
    return min(max(place[0], box[0]), box[2]), min(max(place[1], box[1]), box[3])


def on_floor(rules: Rules, x: float, z: float) -> Point:
    """The nearest place where the whole agent is on the floor."""
    low, high = rules["agent_radius"], rules["floor_size"] - rules["agent_radius"]
    return min(max(x, low), high), min(max(z, low), high)
