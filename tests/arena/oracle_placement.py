"""Whether an episode began as the rules allow, and the oracle's copy of its beginning."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from oracle_episode import ATTACK, FREE, GOTO, STAY, Episode, Rules, new_episode
from oracle_view import Box, Point
from oracle_walk import on_floor

BLOCK = 10.0  # m, side of a target block
EXACT = 1e-9  # m
TARGETS = {"free": FREE, "goto": GOTO, "attack": ATTACK, "stay": STAY}
Pose = tuple[float, float, float]  # m, m, rad


def begun_episode(rules: Rules, state, row: int) -> Episode:
    """The episode that has just begun in a row of the arena."""
    assert state.decisions[row] == 0
    assert state.gun_ticks[row] <= 0, "the gun is ready at an episode's start"
    assert state.spin_sum[row] == 0
    assert not state.spin_turns[row].any(), "the spin window starts empty"
    assert not state.terms[row].any()
    target, enemies = int(state.target[row]), int(state.enemy_count[row])
    boxes = state.obstacles[row, : state.obstacle_count[row]]
    has_base = target in (GOTO, ATTACK)
    assert has_base or not state.fire_base[row].any()
    return new_episode(
        rules,
        target=target,
        pose=(*(float(place) for place in state.position[row]), float(state.yaw[row])),
        difficulty=int(state.difficulty[row]),
        fire_base=tuple(float(part) for part in state.fire_base[row]) if has_base else None,
        boxes=tuple(tuple(float(side) for side in box) for box in boxes),
        enemies=tuple((float(x), float(z)) for x, z in state.enemies[row, :enemies]),
        hits_left=tuple(int(hits) for hits in state.enemy_hits_left[row, :enemies]),
    )


def check_placement(
    rules: Rules, episode: Episode, *, state, row: int, before: Pose, presets
) -> Episode:
    """The episode, knowing its targets; fails where its beginning breaks a rule.

    `before` is the pose before it.
    """
    pose = (episode.x, episode.z, episode.yaw)
    last = (*on_floor(rules, *before[:2]), before[2])
    hits = round(rules["enemy_hits_to_kill"])
    assert all(left == hits for left in episode.hits_left)
    assert abs(math.remainder(pose[2] - last[2], 2 * math.pi)) < 1e-6, "the yaw is kept"
    if episode.target == FREE:
        check_free_places(rules, episode)
        return replace(episode, targets=(False,) * len(episode.enemies))
    assert math.dist(pose[:2], last[:2]) < EXACT, "the place is kept"
    if episode.target == STAY:
        assert not episode.boxes
        assert not episode.enemies
        return episode
    corner = tuple(float(side) for side in state.block[row])
    check_block_place(rules, (episode.x, episode.z), corner)
    shown = matching_turns(rules, episode, corner, presets)
    assert shown, "the block is no preset of its kind"
    check_bystanders(rules, episode, corner)
    beside = round(rules["bystanders"])
    targets = (*targets_of(shown[0][0]), *[False] * beside)
    marks = state.enemy_is_target[row, : len(targets)]
    assert episode.target != ATTACK or tuple(map(bool, marks)) == targets
    return replace(episode, targets=targets)


def check_bystanders(rules: Rules, episode: Episode, corner: Point) -> None:
    """Fail unless bystanders leave a way round the block, and overlap nothing."""
    first = len(episode.enemies) - round(rules["bystanders"])
    radius, agent = rules["enemy_radius"], rules["agent_radius"]
    for index, place in enumerate(episode.enemies[first:], start=first):
        assert radius <= min(place), "a bystander is beyond the floor"
        assert max(place) <= rules["floor_size"] - radius, "a bystander is beyond the floor"
        pairs = zip(place, corner, strict=True)
        nearest = [min(max(here, side), side + BLOCK) for here, side in pairs]
        assert math.dist(place, nearest) >= radius + 2 * agent - EXACT, "it stands at the block"
        assert math.dist(place, (episode.x, episode.z)) >= radius + agent - EXACT
        for other in episode.enemies[:index]:
            assert math.dist(place, other) >= 2 * radius - EXACT, "discs overlap"


def targets_of(preset) -> tuple[bool, ...]:
    """Whether each enemy of a preset stands in its closed FireBase circle, by its decimals."""
    x, z, diameter = (Fraction(repr(float(number))) for number in preset.fire_base)
    places = [[Fraction(repr(float(number))) for number in enemy] for enemy in preset.enemies]
    return tuple(
        (place[0] - x) ** 2 + (place[1] - z) ** 2 <= (diameter / 2) ** 2 for place in places
    )


def check_free_places(rules: Rules, episode: Episode) -> None:
    """Fail unless the hall is empty and all discs are on the floor and apart."""
    assert not episode.boxes
    assert episode.difficulty == 0
    assert len(episode.enemies) == round(rules["free_enemies"])
    agent, enemy = rules["agent_radius"], rules["enemy_radius"]
    discs = [(episode.x, episode.z, agent), *((x, z, enemy) for x, z in episode.enemies)]
    for index, (x, z, radius) in enumerate(discs):
        assert radius <= min(x, z), "a disc is beyond the floor"
        assert max(x, z) <= rules["floor_size"] - radius, "a disc is beyond the floor"
        for other_x, other_z, other in discs[:index]:
            assert math.dist((x, z), (other_x, other_z)) >= radius + other, "discs overlap"


def check_block_place(rules: Rules, agent: Point, corner: Point) -> None:
    """Fail unless the block keeps its distance from the outer walls and from the agent."""
    gap = rules["block_gap_to_walls"]
    for side in corner:
        assert gap - EXACT <= side <= rules["floor_size"] - gap - BLOCK + EXACT
    nearest = [min(max(here, side), side + BLOCK) for here, side in zip(agent, corner, strict=True)]
    free = math.dist(agent, nearest) - rules["agent_radius"]
    assert free >= rules["block_gap_to_agent"] - EXACT


def matching_turns(rules: Rules, episode: Episode, corner: Point, presets: Sequence) -> list[tuple]:
    """The presets, each with its quarter turns, that the block on the floor shows."""
    target = {code: name for name, code in TARGETS.items()}[episode.target]
    return [
        (preset, turns)
        for preset in presets
        if (preset.target, preset.difficulty) == (target, episode.difficulty)
        for turns in range(4)
        if shows(rules, episode, corner, preset, turns)
    ]


def shows(rules: Rules, episode: Episode, corner: Point, preset, turns: int) -> bool:
    """Whether the block on the floor is a preset after some quarter turns."""
    x, z, diameter = preset.fire_base
    wanted = [(*turned((x, z), turns), diameter)]
    wanted += [turned_box(box, turns) for box in preset.obstacles]
    wanted += [turned(place, turns) for place in preset.enemies]
    of_block = episode.enemies[: len(episode.enemies) - round(rules["bystanders"])]
    there = [episode.fire_base, *episode.boxes, *of_block]
    if len(there) != len(wanted) or len(episode.boxes) != len(preset.obstacles):
        return False
    shift = {2: corner, 3: (*corner, 0.0), 4: (*corner, *corner)}
    return all(
        math.dist(place, [a + b for a, b in zip(want, shift[len(want)], strict=True)]) < EXACT
        for place, want in zip(there, wanted, strict=True)
    )


def turned(place: Point, turns: int) -> Point:
    """A place of the block's frame after quarter turns about the block's centre."""
    x, z = place
    for _ in range(turns):
        x, z = z, BLOCK - x
    return x, z


def turned_box(box: Box, turns: int) -> Box:
    """A box of the block's frame after quarter turns about the block's centre."""
    x1, z1 = turned((box[0], box[1]), turns)
    x2, z2 = turned((box[2], box[3]), turns)
    return min(x1, x2), min(z1, z2), max(x1, x2), max(z1, z2)
