"""What edits between steps lead to, by the oracle: its own floor, its own rules of what fits."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from oracle_comparison import PLACE, check_observation
from oracle_episode import ATTACK, FREE, GOTO, STAY, TERMS, Episode, Rules, inside
from oracle_match import Match
from oracle_placement import BLOCK, TARGETS, matching_turns, turned, turned_box
from oracle_view import Box, Point, walls_of

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.scenes.row_editor import RowEditor

EDIT_SHARE = 0.05  # of the rows, after a step
CARRY_SHARE = 0.5  # of the rows whose episode has ended
EXACT = 1e-9  # m
ODDS = {
    "enemy": 0.3,
    "block": 0.25,
    "assign": 0.3,
    "block away": 0.05,
    "enemy away": 0.04,
    "agent": 0.05,
    "clear": 0.01,
}


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
    terms = (0.0,) * len(TERMS)
    return replace(
        episode, fire_base=base, targets=targets, decisions=0, gun_ticks=0, mouse=(), terms=terms
    )


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


class EditedMatch(Match):
    """A match whose rows are edited between decisions, in the arena and by the oracle."""

    def __init__(self, case, seed: int, *, presets, tally) -> None:
        self.ended = {}
        super().__init__(case, seed, presets=presets, tally=tally)
        self.arena.keep_endings = True
        self.editor = RowEditor(self.arena)
        self.dice = np.random.default_rng(seed)
        self.floors = [self._drawn_floor(row) for row in range(len(self.episodes))]

    def step(self) -> None:
        super().step()
        for row in np.flatnonzero(self.buffers.finished).tolist():
            self._after_end(row)
        for row in np.flatnonzero(self.dice.random(len(self.episodes)) < EDIT_SHARE).tolist():
            self._edit(row)

    def _drawn_floor(self, row: int) -> Floor:
        episode = self.episodes[row]
        if episode.target not in (GOTO, ATTACK):
            return Floor((), (-1,) * len(episode.enemies))
        corner = tuple(map(float, self.arena.state.block[row]))
        preset, turns = matching_turns(self.rules[row], episode, corner, self.presets)[0]
        own = len(preset.enemies)
        owners = (0,) * own + (-1,) * (len(episode.enemies) - own)
        return Floor((Stand(preset, corner, turns),), owners, about=0)

    def _next_episode(self, row: int, batch) -> None:
        self.ended[row] = self.rules[row], self.episodes[row]
        super()._next_episode(row, batch)

    def _after_end(self, row: int) -> None:
        """Go on as drawn, or where everything stood."""
        if self.dice.random() >= CARRY_SHARE:
            self.floors[row] = self._drawn_floor(row)
            return
        self.rules[row], last = self.ended[row]
        self.editor.carry_on(row)
        self.tally["carried on"] += 1
        self._accept(row, stayed((self.floors[row], self._at_place(row, last))))

    def _at_place(self, row: int, last: Episode) -> Episode:
        """`last` at the arena's pose, which of an episode that ended is known in single precision.

        In a notch the oracle can't say where.
        """
        x, z = map(float, self.arena.state.position[row])
        if not self.tally["wedged"]:
            assert math.dist((x, z), (last.x, last.z)) <= 1e-5
        yaw = float(self.arena.state.yaw[row])
        assert abs(math.remainder(yaw - last.yaw, 2 * math.pi)) <= PLACE
        return replace(last, x=x, z=z, yaw=yaw)

    def _edit(self, row: int) -> None:
        """One random edit; the arena refuses it exactly where the oracle does."""
        dice, rules, edit = self.dice, self.rules[row], self.editor
        scene = self.floors[row], self.episodes[row]
        at = tuple(dice.uniform(0.0, rules["floor_size"], 2).tolist())
        if scene[1].fire_base is not None and dice.random() < 0.3:  # where enemies count
            at = tuple((dice.normal(0.0, 2.0, 2) + scene[1].fire_base[:2]).tolist())
        number, yaw = int(dice.integers(4)), float(dice.uniform(-math.pi, math.pi))
        preset = self.presets[int(dice.integers(len(self.presets)))]
        key, target = (preset.target, preset.name), str(dice.choice([*TARGETS]))
        kind = str(dice.choice([*ODDS], p=np.array([*ODDS.values()])))
        if kind == "enemy":
            self._both(row, with_enemy(rules, scene, at), lambda: edit.place_enemy(row, at))
        elif kind == "block":
            wanted = with_block(rules, scene, at, preset, number)
            place = lambda: edit.place_block(row, at, preset=key, turns=number)  # noqa: E731
            self._both(row, wanted, place)
            if wanted is not None:  # as in test mode, where that is one click
                scene, target = (self.floors[row], self.episodes[row]), preset.target
                wanted = assigned(scene, TARGETS[target])
                self._both(row, wanted, lambda: edit.assign(row, target))
        elif kind == "assign":
            self._both(row, assigned(scene, TARGETS[target]), lambda: edit.assign(row, target))
        elif kind == "block away":
            wanted = without_block(rules, scene, number)
            self._both(row, wanted, lambda: edit.remove_block(row, number))
        elif kind == "enemy away":
            wanted = without_enemy(rules, scene, number)
            self._both(row, wanted, lambda: edit.remove_enemy(row, number))
        elif kind == "agent":
            blocked = hits_something(rules, scene[1], at, rules["agent_radius"])
            moved = scene[0], replace(scene[1], x=at[0], z=at[1], yaw=yaw)
            place = lambda: edit.place_agent(row, at, yaw=yaw)  # noqa: E731
            self._both(row, None if blocked else moved, place)
        else:
            empty = Floor(), kept(rules, scene, (), ())
            self._both(row, stayed(empty), lambda: edit.clear(row))

    def _both(self, row: int, wanted: Scene | None, edit) -> None:
        """Edit the arena's row; fail where it does not become what the oracle wants."""
        before, refusal = self.arena.snapshot() if wanted is None else {}, None
        try:
            edit()
        except MisuseError as error:
            refusal = error
        assert (refusal is not None) == (wanted is None), f"{refusal}, in {wanted}"
        self.tally["edited" if refusal is None else "refused"] += 1
        if wanted is not None:
            self._accept(row, wanted)
            return
        after = self.arena.snapshot()
        assert all(np.array_equal(array, after[name]) for name, array in before.items())

    def _accept(self, row: int, wanted: Scene) -> None:
        """Take the oracle's scene over, once the arena shows it."""
        self.floors[row], episode = wanted
        state, rules = self.arena.state, self.rules[row]
        boxes = state.obstacles[row, : state.obstacle_count[row]]
        enemies = state.enemies[row, : state.enemy_count[row]]
        np.testing.assert_allclose(boxes, np.reshape(episode.boxes, (-1, 4)), atol=EXACT)
        np.testing.assert_allclose(enemies, np.reshape(episode.enemies, (-1, 2)), atol=EXACT)
        hits = state.enemy_hits_left[row, : len(episode.enemies)]
        assert tuple(map(int, hits)) == episode.hits_left
        assert (int(state.target[row]), int(state.difficulty[row])) == (
            episode.target,
            episode.difficulty,
        )
        if episode.target == ATTACK:
            marks = state.enemy_is_target[row, : len(episode.enemies)]
            assert tuple(map(bool, marks)) == episode.targets
        boxes = tuple(tuple(map(float, box)) for box in boxes)
        self.episodes[row] = replace(
            episode,
            boxes=boxes,
            walls=walls_of(rules["floor_size"], boxes),
            enemies=tuple((float(x), float(z)) for x, z in enemies),
        )
        self.editor.observe(row, self.buffers.observations)
        check_observation(rules, self.episodes[row], self.buffers.observations[row], self.tally)
        self.orders[row] = int(state.order[row])
        self.numbers[row] = int(state.scenario[row])
