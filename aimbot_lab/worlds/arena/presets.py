"""Target blocks as data, the rules that let every episode be won, and the files of blocks.

All lengths are metres in the block's frame, (0, 0) to (10, 10). The agent and the enemies are
discs of radius 0.5; touching an obstacle is allowed, so a gap of exactly 1 m lets the agent pass.
Around the block lies a free ring, 1.5 m wide, that the agent can walk all the way round.

Reachability is exact, without a grid. Grow each obstacle by the radius and the agent shrinks to
a point. The grown obstacles are convex, so what they enclose together is enclosed by a closed
chain of them, each overlapping the next (the nerve theorem), and every such chain is a sum of
the fundamental cycles of the graph "stands less than 1 m from". A free point is cut off from
the outside exactly where one of those cycles winds round it.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from yaml.nodes import MappingNode, Node, ScalarNode

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import FileTable
from aimbot_lab.foundation.yaml_files import (
    MAX_NAME_LENGTH,
    WHOLE,
    FileFormat,
    FileReader,
    FileText,
    Source,
    name_of,
)
from aimbot_lab.worlds.arena.core.state import (
    BLOCK_SIZE,
    DIFFICULTY_COUNT,
    MAX_ENEMIES,
    OF_BLOCKS,
    TARGET,
    Bools,
    Floats,
    Ints,
)
from aimbot_lab.worlds.arena.settings import ArenaSettings

BLOCK_TARGETS = tuple(TARGET._fields[code] for code in OF_BLOCKS)
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
    if preset.target not in BLOCK_TARGETS:
        broken.append(("target", f"target {preset.target!r} is not one of {BLOCK_TARGETS}"))
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


FORM = FileFormat(
    noun="preset",
    kept="presets",
    head="# own target blocks, kept with a run; SHA-256 of all lines below: ",
    max_bytes=2**20,
)
FOLDER = Path(__file__).parent / "data"
SHIPPED_FILES = tuple(FOLDER / f"{target}.yaml" for target in BLOCK_TARGETS)
PRESET_KEYS = ("name", "fire_base", "obstacles", "enemies")
FIRE_BASE_KEYS = ("center", "diameter")
DIFFICULTIES = tuple(str(number + 1) for number in range(DIFFICULTY_COUNT))
SCENE = "scene"  # key of what a scene's file holds beside its block
NOT_ONE = "the scene does not hold one block, which could be a preset"
HEAD = ("name", "target", "difficulty", "FireBase", "obstacles", "enemies")
WIDTHS = {"obstacles": 4, "enemies": 2}  # numbers of each of them


def load_presets(
    files: Sequence[Source] | None = None, *, beside: Sequence[Path] = ()
) -> tuple[Preset, ...]:
    """The presets of `files` in their order; without `files`, those shipped with the package.

    No preset may have the name of another one of its target, those of the files `beside` among
    them, which are not handed out.
    Raises ConfigurationError with every fault of every file, each `file:line:column: what`.
    """
    wanted = SHIPPED_FILES if files is None else tuple(files)
    faults: list[str] = []
    places: dict[tuple[str, str], str] = {}
    presets: list[Preset] = []
    own = [os.path.abspath(name_of(source)) for source in wanted]
    others = [path for path in beside if os.path.abspath(path) not in own]
    for path in (*others, *wanted):
        is_fixed = isinstance(path, FileText) or path in SHIPPED_FILES
        found, wrong = (_read if is_fixed else _read.__wrapped__)(path)
        faults += wrong
        for preset, place in found:
            key = (preset.target, preset.name)
            if key in places:
                reason = f"another {preset.target} preset has this name, at {places[key]}"
                faults.append(f"{place}: preset {preset.name}: {reason}")
            places.setdefault(key, place)
            if path not in others:
                presets.append(preset)
    if faults:
        raise ConfigurationError(*faults)
    return tuple(presets)


@lru_cache(maxsize=16)  # of texts and shipped files, which every check and every arena reads
def _read(source: Source) -> tuple[Sequence[tuple[Preset, str]], Sequence[str]]:
    """The presets of `source`, each with its place, and its faults."""
    faults: list[str] = []
    reader = _PresetReader(source, faults, form=FORM, is_shipped=source in SHIPPED_FILES)
    return tuple(reader.presets()), tuple(faults)


class _PresetReader(FileReader):
    """Reads one file of presets."""

    def presets(self) -> list[tuple[Preset, str]]:
        """The presets without a fault, each with its place, `file:line:column`."""
        faults_before = len(self.faults)
        found: list[tuple[Preset, str]] = []
        whole = self.fields(self.root(), WHOLE, allowed=(*BLOCK_TARGETS, SCENE))
        scene = whole.pop(SCENE, None)
        for target, difficulties in whole.items():
            cells = self.fields(difficulties, target, allowed=DIFFICULTIES)
            for difficulty, listed in cells.items():
                for node in self.items(listed, f"{target}: {difficulty}"):
                    preset = self._preset(node, target, difficulty=int(difficulty))
                    if preset is not None:
                        found.append((preset, self.place(node)))
        if not found and len(self.faults) == faults_before:
            why = "the file holds no preset" if scene is None else NOT_ONE
            self.faults.append(f"{self.path}:1:1: {why}")
        return found

    def _preset(self, node: Node, target: str, *, difficulty: int) -> Preset | None:
        """The preset at `node`, or None where it has a fault."""
        faults_before = len(self.faults)
        label = f"preset {_name_in(node)}"
        fields = self.fields(node, label, allowed=PRESET_KEYS, required=PRESET_KEYS[:2])
        name = self.name(fields.get("name"), label)
        where = f"{label}: fire_base"
        base = self.fields(
            fields.get("fire_base"), where, allowed=FIRE_BASE_KEYS, required=FIRE_BASE_KEYS
        )
        centre = self.numbers(base.get("center"), f"{where}: center", count=2)
        diameter = self.number(base.get("diameter"), f"{where}: diameter")
        boxes = self.points(fields.get("obstacles"), f"{label}: obstacles", count=4)
        enemies = self.points(fields.get("enemies"), f"{label}: enemies", count=2)
        if len(self.faults) > faults_before:
            return None
        preset = Preset(
            name=name,
            target=target,
            difficulty=difficulty,
            fire_base=(centre[0], centre[1], diameter),
            obstacles=tuple((box[0], box[1], box[2], box[3]) for box in boxes),
            enemies=tuple((enemy[0], enemy[1]) for enemy in enemies),
        )
        for field, reason in broken_rules(preset):
            self.fault(fields.get(field, node), f"{label}: {reason}")
        return preset if len(self.faults) == faults_before else None


def _name_in(node: Node) -> str:
    """The name to blame in faults, also where the rest of the preset is broken."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == "name" and isinstance(value, ScalarNode) and value.value:
                text = value.value[:MAX_NAME_LENGTH]
                return text if text.isprintable() else ascii(text)
    return "without a name"


def chosen_presets(settings: ArenaSettings, given: Sequence[Preset] | None) -> Sequence[Preset]:
    """`given`, or else the shipped presets, where they are wanted, and those that `settings` name.

    Raises ConfigurationError with every rule that any of them breaks.
    """
    if given is None:
        shipped = SHIPPED_FILES if settings.shipped_presets else ()
        return load_presets([*shipped, *FORM.sources(settings.presets)])
    faults = [fault for preset in given for fault in _given_faults(preset)]
    if faults:
        raise ConfigurationError(*faults)
    return given


def lacking_presets(settings: ArenaSettings, target: str, weights: Sequence[float]) -> list[int]:
    """The difficulties of `target` that have a weight and no preset among those of `settings`."""
    if settings.shipped_presets:  # which have one of each
        return []
    there = {(one.target, one.difficulty) for one in chosen_presets(settings, None)}
    drawn = (level for level, weight in enumerate(weights, start=1) if weight > 0)
    return [level for level in drawn if (target, level) not in there]


def _given_faults(preset: object) -> list[str]:
    """What is wrong with a preset of a caller, the form of its fields first."""
    if not isinstance(preset, Preset):
        return [f"preset {preset!r}: must be a Preset"]
    faults = []
    if type(preset.difficulty) is not int:
        faults.append(f"difficulty {preset.difficulty!r} is not 1 to 5")
    if not _is_numbers(preset.fire_base, 3):
        faults.append(f"fire_base: must be three numbers (got {preset.fire_base!r})")
    for name, width in WIDTHS.items():
        items = getattr(preset, name)
        if not isinstance(items, tuple | list) or not all(_is_numbers(i, width) for i in items):
            faults.append(f"{name}: must each be {width} numbers (got {items!r})")
    return [f"preset {preset.name}: {reason}" for reason in faults] or preset_faults(preset)


def _is_numbers(value: object, count: int) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == count
        and all(isinstance(number, int | float) for number in value)
    )


def kept_presets(entries: Sequence[Path | str]) -> str:
    """A preset file, as text, with all that the `entries` of `env.presets` hold, in that order.

    The text of such a text is the same. Raises ConfigurationError with every fault of every file.
    """
    files = FORM.sources(entries)
    return FORM.joined(_lines(load_presets(files, beside=SHIPPED_FILES)), files)


def _lines(presets: Sequence[Preset]) -> Iterator[str]:
    """The file: within a target and a difficulty the order stays, as an arena draws by it."""
    cells: dict[str, dict[int, list[Preset]]] = {}
    for preset in presets:
        cells.setdefault(preset.target, {}).setdefault(preset.difficulty, []).append(preset)
    for target in sorted(cells):
        yield f"{target}:"
        for difficulty in sorted(cells[target]):
            yield f"  {difficulty}:"
            for preset in cells[target][difficulty]:
                yield f"  - {json.dumps(preset_fields(preset), ensure_ascii=False)}"


def preset_fields(preset: Preset) -> dict[str, Any]:
    """`preset` as plain values, as a preset file holds them."""
    x, z, diameter = preset.fire_base
    listed = {"obstacles": preset.obstacles, "enemies": preset.enemies}
    return {
        "name": preset.name,
        "fire_base": {"center": [x, z], "diameter": diameter},
        **{key: items for key, items in listed.items() if items},
    }


def listed_presets(paths: Sequence[Path]) -> FileTable:
    """The presets of `paths`, or the shipped ones, one a row."""
    found = presets_of(paths)
    documents: tuple[dict[str, Any], ...] = tuple(
        {
            "name": one.name,
            "target": one.target,
            "difficulty": one.difficulty,
            "fire_base_diameter": one.fire_base[2],
            "obstacles": len(one.obstacles),
            "enemies": len(one.enemies),
        }
        for one in found
    )
    rows = tuple(
        tuple({**one, "fire_base_diameter": f"{one['fire_base_diameter']:g} m"}.values())
        for one in documents
    )
    return FileTable(HEAD, rows, documents)


def preset_count(paths: Sequence[Path]) -> int:
    """How many presets `paths` hold, none of which has the name of another or a shipped one."""
    wanted = FORM.sources(paths) if paths else SHIPPED_FILES
    return len(load_presets(wanted, beside=SHIPPED_FILES))


def presets_of(paths: Sequence[Path]) -> tuple[Preset, ...]:
    """The presets of files and folders, or the shipped ones."""
    return load_presets(FORM.sources(paths) if paths else None)
