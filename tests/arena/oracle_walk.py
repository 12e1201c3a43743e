"""Where the oracle's agent walks: each small step ends at the free place nearest to its aim.

That place is looked for among those straight out of what the aim overlaps, without an order: what
a wall is put together from cannot matter. Where two things that are not square to each other both
hold the agent, it is wedged: the oracle does not say where in the notch, only what is lawful there.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from oracle_episode import Episode, Rules
from oracle_view import Box, Point

TOUCH = 1e-9  # m, overlap that is let be
ROUNDING = 1e-12  # m, overlap that a way out leads to
SQUARE = 1e-9  # cosine of the angle between two pushes that are square to each other
LAWFUL = 1e-8  # m

Way = tuple[float, float]


class Push(NamedTuple):
    """The way out of one thing."""

    overlap: float  # m
    way: Way  # of length 1, (0, 0) where none is shorter than another


class Walk(NamedTuple):
    """Where a decision's walk leads; once wedged, somewhere from there on."""

    place: Point
    wedged: bool


def walked(rules: Rules, episode: Episode, vertical: int, horizontal: int) -> Walk:
    """Where the agent stands after walking for one decision, tick by tick."""
    place = (episode.x, episode.z)
    ahead = {0: 0, 1: 1, 2: -1}[vertical]
    right = {0: 0, 1: 1, 2: -1}[horizontal]
    if ahead == 0 and right == 0:
        return Walk(place, wedged=False)
    sin, cos = math.sin(episode.yaw), math.cos(episode.yaw)
    way_x, way_z = ahead * sin + right * cos, ahead * cos - right * sin
    length = math.hypot(way_x, way_z)
    parts = max(1, math.ceil(tick_step(rules) / (rules["agent_radius"] / 2)))
    stride = tick_step(rules) / parts / length
    for _ in range(rules.period * parts):
        aim = on_floor(rules, place[0] + way_x * stride, place[1] + way_z * stride)
        found = nearest_free(rules, episode, aim)
        if found is None:
            return Walk(place, wedged=True)
        place = found
    return Walk(place, wedged=False)


def tick_step(rules: Rules) -> float:
    """Metres walked in a physics tick."""
    return rules["move_speed"] * rules["fixed_timestep"]


def nearest_free(rules: Rules, episode: Episode, aim: Point) -> Point | None:
    """The free place nearest to an aim; None where no one way out, nor two square ones, lead there.

    Whatever the order: out of the thing that is overlapped most there is no nearer way than
    straight out, so one push that sets free is the nearest; and two square ones lead to a corner.
    """
    if is_free(rules, episode, aim):
        return aim
    out = [(step_out(rules, aim, push), push.way) for push in pushes(rules, episode, aim)]
    found = [place for place, _ in out if is_free(rules, episode, place, ROUNDING)]
    if not found:
        found = [
            corner
            for place, way in out
            for push in pushes(rules, episode, place)
            if abs(way[0] * push.way[0] + way[1] * push.way[1]) < SQUARE
            and is_free(rules, episode, corner := step_out(rules, place, push), ROUNDING)
        ]
    return min(found, key=lambda place: math.dist(aim, place), default=None)


def step_out(rules: Rules, place: Point, push: Push) -> Point:
    """A place after one push."""
    return (place[0] + push.overlap * push.way[0], place[1] + push.overlap * push.way[1])


def is_free(rules: Rules, episode: Episode, place: Point, let_be: float = TOUCH) -> bool:
    """Whether the agent's disc overlaps nothing by more, at a place on the floor."""
    return not any(True for _ in pushes(rules, episode, place, let_be))


def pushes(rules: Rules, episode: Episode, place: Point, let_be: float = TOUCH) -> Iterator[Push]:
    """The ways out of everything that the agent's disc overlaps by more at a place."""
    radius = rules["agent_radius"]
    for box in episode.boxes:
        yield from push_from(place, nearest_of_box(place, box), radius, let_be)
    for centre, hits in zip(episode.enemies, episode.hits_left, strict=True):
        if hits > 0:
            yield from push_from(place, centre, radius + rules["enemy_radius"], let_be)
    high = rules["floor_size"] - radius
    for axis, (side, inward) in ((a, s) for a in (0, 1) for s in ((radius, 1.0), (high, -1.0))):
        overlap = (side - place[axis]) * inward
        if overlap > let_be:
            yield Push(overlap, (inward, 0.0) if axis == 0 else (0.0, inward))


def push_from(place: Point, point: Point, reach: float, let_be: float) -> Iterator[Push]:
    """The way out of a thing whose nearest point is given, where it is nearer than `reach`."""
    gap = math.dist(place, point)
    if gap == 0.0:
        yield Push(reach, (0.0, 0.0))
    elif reach - gap > let_be:
        yield Push(reach - gap, ((place[0] - point[0]) / gap, (place[1] - point[1]) / gap))


def nearest_of_box(place: Point, box: Box) -> Point:
    """The point of a box nearest to a place, by its four sides; the place itself inside."""
    if box[0] <= place[0] <= box[2] and box[1] <= place[1] <= box[3]:
        return place
    corners = [(box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3])]
    sides = zip(corners, corners[1:] + corners[:1], strict=True)
    return min((nearest_of_side(place, *side) for side in sides), key=lambda p: math.dist(place, p))


def nearest_of_side(place: Point, start: Point, end: Point) -> Point:
    """The point of a straight side nearest to a place."""
    along = (end[0] - start[0], end[1] - start[1])
    length = along[0] ** 2 + along[1] ** 2
    share = (place[0] - start[0]) * along[0] + (place[1] - start[1]) * along[1]
    share = min(max(share / length, 0.0), 1.0)
    return (start[0] + share * along[0], start[1] + share * along[1])


def on_floor(rules: Rules, x: float, z: float) -> Point:
    """The nearest place where the whole agent is on the floor."""
    low, high = rules["agent_radius"], rules["floor_size"] - rules["agent_radius"]
    return min(max(x, low), high), min(max(z, low), high)


def unlawful(rules: Rules, episode: Episode, place: Point) -> list[str]:
    """Why the agent of an episode cannot have walked to a place in one decision."""
    faults = [
        f"{place} overlaps something by {push.overlap} m"
        for push in pushes(rules, episode, place)
        if push.overlap > LAWFUL
    ]
    reach = tick_step(rules) * rules.period + LAWFUL
    if math.dist((episode.x, episode.z), place) > reach:
        faults.append(f"{place} is more than {reach} m from {episode.x}, {episode.z}")
    return faults
