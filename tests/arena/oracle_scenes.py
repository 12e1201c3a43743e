"""The oracle's own floor, and what fits on it: what edits make of a scene."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from oracle_episode import ATTACK, COUNTS, FREE, STAY, TERMS, Episode, Rules, inside
from oracle_placement import BLOCK, TARGETS, turned, turned_box
from oracle_view import Box, Point, walls_of

from aimbot_lab.worlds.arena.presets import Preset


class Stand(NamedTuple):
    """A block on the oracle's floor."""

    preset: Preset
    corner: Point
    turns: int

    def placed(self, numbers: Sequence[float]) -> tuple[float, ...]:
        """A point or box of the block's frame on the floor."""
        there = (
            turned_box(numbers, self.turns) if len(numbers) == 4 else turned(numbers, self.turns)
        )
        return tuple(a + b for a, b in zip(there, self.corner * 2, strict=False))

    @property
    def fire_base(self) -> tuple[float, float, float]:
        return (*self.placed(self.preset.fire_base[:2]), self.preset.fire_base[2])


class Floor(NamedTuple):
    """Which blocks stand, and the rank of the block of each enemy, -1: none."""

    blocks: tuple[Stand, ...] = ()
    owners: tuple[int, ...] = ()
    about: int = -1  # rank of the block that the target is about


Scene = tuple[Floor, Episode]


def with_enemy(rules: Rules, scene: Scene, at: Point) -> Scene | None:
    """The scene with one more enemy; None where it does not fit."""
    floor, episode = scene
    radius, agent = rules["enemy_radius"], rules["agent_radius"]
    if math.dist(at, (episode.x, episode.z)) < radius + agent or hits_something(rules, episode, at):
        return None
    counts = episode.fire_base is not None and inside(episode, at)
    hits = round(rules["enemy_hits_to_kill"])
    grown = replace(
        episode,
        enemies=(*episode.enemies, at),
        hits_left=(*episode.hits_left, hits),
        targets=(*episode.targets, counts),
    )
    return floor._replace(owners=(*floor.owners, -1)), grown


def hits_something(rules: Rules, episode: Episode, at: Point, radius: float | None = None) -> bool:
    """Whether a disc, by default an enemy, would overlap the floor's edge, a box or an enemy."""
    radius = rules["enemy_radius"] if radius is None else radius
    if min(at) < radius or max(at) > rules["floor_size"] - radius:
        return True
    if any(gap(at, box) < radius for box in episode.boxes):
        return True
    alive = [
        place for place, hits in zip(episode.enemies, episode.hits_left, strict=True) if hits > 0
    ]
    return any(math.dist(at, place) < radius + rules["enemy_radius"] for place in alive)


def gap(at: Point, box: Box) -> float:
    nearest = min(max(at[0], box[0]), box[2]), min(max(at[1], box[1]), box[3])
    return math.dist(at, nearest)


def with_block(rules: Rules, scene: Scene, at: Point, preset: Preset, turns: int) -> Scene | None:
    """The scene with one more block, not assigned; None where it does not fit."""
    floor, episode = scene
    corner = at[0] - BLOCK / 2, at[1] - BLOCK / 2
    whole = (*corner, corner[0] + BLOCK, corner[1] + BLOCK)
    wall_gap, room = rules["block_gap_to_walls"], rules["block_gap_to_agent"]
    if min(whole) < wall_gap or max(whole) > rules["floor_size"] - wall_gap:
        return None
    if gap((episode.x, episode.z), whole) < rules["agent_radius"] + room:
        return None
    for other in floor.blocks:
        ways = [abs(a - b) - BLOCK for a, b in zip(corner, other.corner, strict=True)]
        if max(ways) < wall_gap:
            return None
    pairs = zip(episode.enemies, episode.hits_left, strict=True)
    if any(hits > 0 and gap(place, whole) < rules["enemy_radius"] for place, hits in pairs):
        return None
    stand = Stand(preset, corner, turns)
    owners = (*floor.owners, *[len(floor.blocks)] * len(preset.enemies))
    stands = floor._replace(blocks=(*floor.blocks, stand), owners=owners)
    return stands, with_things(rules, episode, stand)


def with_things(rules: Rules, episode: Episode, stand: Stand) -> Episode:
    boxes = (*episode.boxes, *(stand.placed(box) for box in stand.preset.obstacles))
    enemies = tuple(stand.placed(place) for place in stand.preset.enemies)
    hits = round(rules["enemy_hits_to_kill"])
    return replace(
        episode,
        boxes=boxes,
        walls=walls_of(rules["floor_size"], boxes),
        enemies=(*episode.enemies, *enemies),
        hits_left=(*episode.hits_left, *[hits] * len(enemies)),
        targets=(*episode.targets, *[False] * len(enemies)),
    )


def assigned(scene: Scene, target: int) -> Scene | None:
    """The scene with that target, about the last block of it; None where it is refused."""
    floor, episode = scene
    alive = [hits > 0 for hits in episode.hits_left]
    if target == STAY or (target == FREE and not any(alive)):
        return stayed(scene)
    if target == FREE:
        calm = stayed(scene)
        return calm[0], replace(calm[1], target=FREE)
    ranks = [i for i, stand in enumerate(floor.blocks) if TARGETS[stand.preset.target] == target]
    if not ranks:
        return None
    own = [owner == ranks[-1] for owner in floor.owners]
    if target == ATTACK and not any(a and b for a, b in zip(own, alive, strict=True)):
        return None
    stand = floor.blocks[ranks[-1]]
    circle = replace(episode, fire_base=stand.fire_base)
    targets = tuple(o or inside(circle, e) for o, e in zip(own, episode.enemies, strict=True))
    new = replace(episode, target=target, difficulty=stand.preset.difficulty)
    return floor._replace(about=ranks[-1]), begun(new, stand.fire_base, targets)


def begun(episode: Episode, base, targets: tuple[bool, ...]) -> Episode:
    of_scene = {"fire_base": base, "targets": targets}
    sums = {"terms": (0.0,) * len(TERMS), "counts": (0,) * len(COUNTS)}
    return replace(episode, decisions=0, gun_ticks=0, mouse=(), **of_scene, **sums)


def stayed(scene: Scene) -> Scene:
    """A Stay where everything stands."""
    calm = replace(scene[1], target=STAY, difficulty=0)
    return scene[0]._replace(about=-1), begun(calm, None, (False,) * len(scene[1].enemies))


def kept(rules: Rules, scene: Scene, boxes: Sequence[Box], enemies: Sequence[int]) -> Episode:
    """The episode with these boxes, and of its enemies those of these numbers."""
    return replace(
        scene[1],
        boxes=tuple(boxes),
        walls=walls_of(rules["floor_size"], boxes),
        **{
            name: tuple(getattr(scene[1], name)[k] for k in enemies)
            for name in ("enemies", "hits_left", "targets")
        },
    )


def without_enemy(rules: Rules, scene: Scene, number: int) -> Scene | None:
    floor, episode = scene
    if number >= len(floor.owners) or floor.owners[number] >= 0:
        return None
    others = [k for k in range(len(floor.owners)) if k != number]
    owners = tuple(floor.owners[k] for k in others)
    return floor._replace(owners=owners), kept(rules, scene, episode.boxes, others)


def without_block(rules: Rules, scene: Scene, number: int) -> Scene | None:
    floor, _ = scene
    if number >= len(floor.blocks):
        return None
    blocks = tuple(stand for rank, stand in enumerate(floor.blocks) if rank != number)
    others = [k for k, owner in enumerate(floor.owners) if owner != number]
    owners = tuple(floor.owners[k] - (floor.owners[k] > number) for k in others)
    boxes = [stand.placed(box) for stand in blocks for box in stand.preset.obstacles]
    left = Floor(blocks, owners, floor.about - (floor.about > number))
    left = left, kept(rules, scene, boxes, others)
    return stayed(left) if floor.about == number else left
