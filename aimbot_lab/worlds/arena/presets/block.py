"""A target block as data, and the rules it must obey so that every episode can be won.

All lengths are metres in the block's frame, (0, 0) to (10, 10). The agent and the enemies are
discs of radius 0.5; touching an obstacle is allowed, so a gap of exactly 1 m lets the agent pass.
Around the block lies a free ring, 1.5 m wide, that the agent can walk all the way round.

Reachability is exact, without a grid. Grow each obstacle by the radius and the agent shrinks to
a point. The grown obstacles are convex, so what they enclose together is enclosed by a closed
chain of them, each overlapping the next (the nerve theorem), and every such chain is a sum of
the fundamental cycles of the graph "stands less than 1 m from". A free point is cut off from
the outside exactly where one of those cycles winds round it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from aimbot_lab.worlds.arena.core.state import (
    BLOCK_SIZE,
    DIFFICULTY_COUNT,
    MAX_ENEMIES,
    Bools,
    Floats,
    Ints,
)

TARGETS = ("goto", "attack")
MAX_OBSTACLES = 12
MIN_DIAMETER, MAX_DIAMETER = 1.0, 10.0
RADIUS = 0.5  # of the agent's and an enemy's disc
TOLERANCE = 1e-9  # so that 4.3 - 3.3 is a gap of 1 m
LINES_OF_SIGHT = ((72, 5), (720, 41))  # directions, parallel lines in each: coarse, then fine


@dataclass(frozen=True)
class Preset:
    """What a target block holds, in metres in the block's frame, (0, 0) to (10, 10)."""

    name: str  # unique within its target
    target: str  # "goto" or "attack"
    difficulty: int  # 1 (open) to 5 (hardest)
    fire_base: tuple[float, float, float]  # centre x, centre z, diameter
    obstacles: tuple[tuple[float, float, float, float], ...]  # min x, min z, max x, max z
    enemies: tuple[tuple[float, float], ...] = ()  # x, z; attack only


class Walls(NamedTuple):
    """The obstacles of a block, and what they shut in together."""

    boxes: Floats  # [K, 4] m, min x, min z, max x, max z
    chains: list[Floats]  # closed polygons [V, 2] through boxes too near each other to pass


BrokenRule = tuple[str, str]
"""The field of a preset to blame, and what is wrong with it."""


def preset_faults(preset: Preset) -> list[str]:
    """One line for every rule that `preset` breaks, naming it and the reason; empty if none."""
    return [f"preset {preset.name}: {reason}" for _, reason in broken_rules(preset)]


@np.errstate(over="ignore")
def broken_rules(preset: Preset) -> list[BrokenRule]:
    """Every rule that `preset` breaks; what depends on a broken one is not looked at."""
    broken = [*_kind_rules(preset), *_number_rules(preset)]
    if broken:
        return broken
    boxes = np.array(preset.obstacles).reshape(-1, 4)
    base_rules, box_rules = _fire_base_rules(preset), _obstacle_rules(boxes)
    enemy_rules = _enemy_rules(preset, boxes)
    broken = [*base_rules, *box_rules, *enemy_rules]
    if box_rules:
        return broken
    walls = Walls(boxes, closed_chains(boxes))
    if not base_rules:
        broken += _way_in_rules(preset, walls)
    if not enemy_rules:
        broken += _hit_rules(preset, walls)
    return broken


def _kind_rules(preset: Preset) -> list[BrokenRule]:
    broken = []
    if preset.target not in TARGETS:
        broken.append(("target", f"target {preset.target!r} is not one of {TARGETS}"))
    if preset.difficulty not in range(1, DIFFICULTY_COUNT + 1):
        broken.append(("difficulty", f"difficulty {preset.difficulty} is not 1 to 5"))
    if len(preset.obstacles) > MAX_OBSTACLES:
        reason = f"{len(preset.obstacles)} obstacles, at most {MAX_OBSTACLES} are allowed"
        broken.append(("obstacles", reason))
    if len(preset.enemies) > MAX_ENEMIES:
        reason = f"{len(preset.enemies)} enemies, at most {MAX_ENEMIES} are allowed"
        broken.append(("enemies", reason))
    if preset.target == "attack" and not preset.enemies:
        broken.append(("enemies", "an attack block needs at least one enemy"))
    if preset.target == "goto" and preset.enemies:
        broken.append(("enemies", "a goto block has no enemies"))
    return broken


def _number_rules(preset: Preset) -> list[BrokenRule]:
    fields = {
        "fire_base": preset.fire_base,
        "obstacles": preset.obstacles,
        "enemies": preset.enemies,
    }
    return [
        (name, f"{name}: every number must be finite (got {value})")
        for name, value in fields.items()
        if not np.isfinite(np.array(value, float)).all()
    ]


def _fire_base_rules(preset: Preset) -> list[BrokenRule]:
    x, z, diameter = preset.fire_base
    broken = []
    if not MIN_DIAMETER <= diameter <= MAX_DIAMETER:
        reason = f"the FireBase's diameter is {diameter:g} m, allowed are 1 to 10 m"
        broken.append(("fire_base", reason))
    nearest_edge = min(x, z, BLOCK_SIZE - x, BLOCK_SIZE - z)
    if nearest_edge < diameter / 2 - TOLERANCE:
        reason = (
            f"the FireBase at ({x:g}, {z:g}) with diameter {diameter:g} m "
            "reaches beyond the block, (0, 0) to (10, 10)"
        )
        broken.append(("fire_base", reason))
    return broken


def _obstacle_rules(boxes: Floats) -> list[BrokenRule]:
    broken = []
    for number, box in enumerate(boxes, start=1):
        name = f"obstacle {number} {_listed(box)}"
        if not (box[:2] < box[2:]).all():
            reason = f"{name} has no positive size: give min x, min z, max x, max z"
            broken.append(("obstacles", reason))
        if box.min() < -TOLERANCE or box.max() > BLOCK_SIZE + TOLERANCE:
            reason = f"{name} reaches beyond the block, (0, 0) to (10, 10)"
            broken.append(("obstacles", reason))
    return broken


def _enemy_rules(preset: Preset, boxes: Floats) -> list[BrokenRule]:
    broken = []
    x, z, diameter = preset.fire_base
    enemies = _places(preset)
    room = gaps(enemies, boxes)
    for index, enemy in enumerate(enemies):
        name = f"enemy {index + 1} {_listed(enemy)}"
        if enemy.min() < -TOLERANCE or enemy.max() > BLOCK_SIZE + TOLERANCE:
            broken.append(("enemies", f"{name} is outside the block"))
        if np.hypot(enemy[0] - x, enemy[1] - z) > diameter / 2 + TOLERANCE:
            broken.append(("enemies", f"{name} is outside the FireBase circle"))
        for box in np.flatnonzero(room[index] < RADIUS - TOLERANCE):
            reason = f"{name} overlaps obstacle {box + 1} {_listed(boxes[box])}"
            broken.append(("enemies", reason))
        for other in range(index):
            if np.hypot(*(enemy - enemies[other])) < 2 * RADIUS - TOLERANCE:
                broken.append(("enemies", f"{name} overlaps enemy {other + 1}"))
    return broken


def _way_in_rules(preset: Preset, walls: Walls) -> list[BrokenRule]:
    centre = np.array([preset.fire_base[:2]])
    inside = np.flatnonzero(gaps(centre, walls.boxes)[0] < RADIUS - TOLERANCE)
    if inside.size:
        where = ", ".join(str(number + 1) for number in inside)
        reason = f"the agent's disc does not fit on the FireBase centre: obstacle {where}"
        return [("fire_base", reason)]
    if not reachable(centre, walls)[0]:
        reason = "the FireBase centre cannot be reached from outside by a disc of radius 0.5 m"
        return [("obstacles", reason)]
    return []


def _hit_rules(preset: Preset, walls: Walls) -> list[BrokenRule]:
    """An enemy that the agent can walk up to can be hit from there; others need a line."""
    enemies = _places(preset)
    near = reachable(enemies, walls)
    return [
        (
            "enemies",
            f"enemy {index + 1} {_listed(enemy)} cannot be hit from any place the agent can reach",
        )
        for index, enemy in enumerate(enemies)
        if not near[index]
        and not any(_is_seen(enemy, walls, counts=counts) for counts in LINES_OF_SIGHT)
    ]


def _places(preset: Preset) -> Floats:
    return np.array(preset.enemies).reshape(-1, 2)


def _listed(numbers: Floats) -> str:
    return "(" + ", ".join(f"{number:g}" for number in numbers) + ")"


def gaps(points: Floats, boxes: Floats) -> Floats:
    """Distance [N, K] in metres from `points` [N, 2] to `boxes` [K, 4]; 0 inside."""
    low, high = boxes[:, :2], boxes[:, 2:]
    at = points[:, None]
    outside = np.maximum(np.maximum(low - at, at - high), 0.0)
    return np.hypot(outside[..., 0], outside[..., 1])


def reachable(points: Floats, walls: Walls) -> Bools:
    """Where [N] the agent's disc fits on `points` [N, 2] and has a way there from outside."""
    fits = (gaps(points, walls.boxes) >= RADIUS - TOLERANCE).all(axis=1)
    outside = [_windings(points, chain) == 0 for chain in walls.chains]
    free: Bools = np.logical_and.reduce([fits, *outside])
    return free


def closed_chains(boxes: Floats) -> list[Floats]:
    """Closed polygons [V, 2] through the boxes [K, 4] of each fundamental cycle of narrow gaps."""
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    narrow = np.hypot(*np.moveaxis(np.maximum(low - high, 0.0), 2, 0)) < 2 * RADIUS - TOLERANCE
    between = (low + high) / 2  # a point of both grown boxes wherever `narrow`
    paths: dict[int, list[Floats]] = {}
    chains = []
    for root in range(len(boxes)):
        waiting = [] if root in paths else [root]
        paths.setdefault(root, [centres[root]])
        for box in waiting:
            for other in np.flatnonzero(narrow[box]).tolist():
                if other not in paths:
                    paths[other] = [*paths[box], between[box, other], centres[other]]
                    waiting.append(other)
                elif other < box:
                    chain = [*paths[box], between[box, other], *reversed(paths[other])]
                    chains.append(np.array(chain))
    return chains


def _windings(points: Floats, polygon: Floats) -> Ints:
    """How often [N] the closed `polygon` [V, 2] winds round each of `points` [N, 2]."""
    start, end = polygon, np.roll(polygon, -1, axis=0)
    x, z = points[:, :1], points[:, 1:]
    along = (end[:, 0] - start[:, 0]) * (z - start[:, 1])
    side = along - (x - start[:, 0]) * (end[:, 1] - start[:, 1])
    rising = (start[:, 1] <= z) & (end[:, 1] > z) & (side > 0)
    falling = (end[:, 1] <= z) & (start[:, 1] > z) & (side < 0)
    count: Ints = rising.sum(axis=1) - falling.sum(axis=1)
    return count


def _is_seen(enemy: Floats, walls: Walls, *, counts: tuple[int, int]) -> bool:
    """Whether a line from the disc of `enemy` [2] meets a place that the agent can reach.

    The lines start on the chord of the disc that is square to them and stop at the first box.
    A stretch of free places on a line begins where it leaves a grown box, or 1 m from the enemy.
    """
    directions, lines = counts
    angle = (np.arange(directions) + 0.5) * (2 * np.pi / directions)
    heading = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    offset = np.linspace(-RADIUS, RADIUS, lines + 2)[1:-1]
    across = np.stack([-heading[:, 1], heading[:, 0]], axis=1)
    start = (enemy + offset[:, None, None] * across).reshape(-1, 2)
    heading = np.tile(heading, (lines, 1))
    enter, leave = _crossings(start, heading, boxes=walls.boxes)
    stop = np.where((enter <= leave) & (enter >= 0), enter, np.inf).min(axis=1, initial=np.inf)
    beside = np.repeat(np.sqrt((2 * RADIUS) ** 2 - offset**2), directions)
    begins = np.concatenate(
        [beside[:, None], leave_grown(start, heading, boxes=walls.boxes)], axis=1
    )
    line, which = np.nonzero((begins >= beside[:, None]) & (begins <= stop[:, None]))
    places = start[line] + begins[line, which][:, None] * heading[line]
    return bool(reachable(places, walls).any())


def _crossings(start: Floats, heading: Floats, *, boxes: Floats) -> tuple[Floats, Floats]:
    """Where [L, K] in metres each line enters and leaves each box; it misses if enter > leave.

    No component of `heading` [L, 2] may be 0.
    """
    to_low = (boxes[:, :2] - start[:, None]) / heading[:, None]
    to_high = (boxes[:, 2:] - start[:, None]) / heading[:, None]
    enter: Floats = np.minimum(to_low, to_high).max(axis=2)
    leave: Floats = np.maximum(to_low, to_high).min(axis=2)
    return enter, leave


def leave_grown(start: Floats, heading: Floats, *, boxes: Floats) -> Floats:
    """Where [L, K] in metres each line leaves each box grown by the radius; -inf if it misses."""
    leaves = []
    for grown in (np.array([1, 0, -1, 0]), np.array([0, 1, 0, -1])):
        enter, leave = _crossings(start, heading, boxes=boxes - RADIUS * grown)
        leaves.append(np.where(enter <= leave, leave, -np.inf))
    for corner in (boxes[:, [0, 1]], boxes[:, [0, 3]], boxes[:, [2, 1]], boxes[:, [2, 3]]):
        towards = corner - start[:, None]
        along = (towards * heading[:, None]).sum(axis=2)
        left = RADIUS**2 - (towards**2).sum(axis=2) + along**2
        leaves.append(np.where(left >= 0, along + np.sqrt(np.maximum(left, 0)), -np.inf))
    last: Floats = np.maximum.reduce(leaves)
    return last
