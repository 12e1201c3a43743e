"""Preset files: read and checked, chosen by settings, listed, kept with a run.

Shipped with the package or a user's own. The form of a file is described in `data/README.md`.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yaml.nodes import MappingNode, Node, ScalarNode

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import FileTable, KeptFiles
from aimbot_lab.foundation.yaml_files import (
    MAX_NAME_LENGTH,
    WHOLE,
    FileFormat,
    FileReader,
    Source,
    name_of,
)
from aimbot_lab.worlds.arena.core.state import DIFFICULTY_COUNT
from aimbot_lab.worlds.arena.presets.block import TARGETS, Preset, broken_rules, preset_faults
from aimbot_lab.worlds.arena.settings import ArenaSettings

if TYPE_CHECKING:
    from PIL.Image import Image

FORM = FileFormat(
    noun="preset",
    kept="presets",
    head="# own target blocks, kept with a run; SHA-256 of all lines below: ",
    max_bytes=2**20,
)
FOLDER = Path(__file__).parent / "data"
SHIPPED_FILES = tuple(FOLDER / f"{target}.yaml" for target in TARGETS)
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
    faults: list[str] = []
    places: dict[tuple[str, str], str] = {}
    presets: list[Preset] = []
    wanted = SHIPPED_FILES if files is None else tuple(files)
    own = [os.path.abspath(name_of(source)) for source in wanted]
    others = [path for path in beside if os.path.abspath(path) not in own]
    for path in (*others, *wanted):
        for preset, place in _PresetReader(
            path, faults, form=FORM, is_own=path in SHIPPED_FILES
        ).presets():
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


class _PresetReader(FileReader):
    """Reads one file of presets."""

    def presets(self) -> list[tuple[Preset, str]]:
        """The presets without a fault, each with its place, `file:line:column`."""
        faults_before = len(self.faults)
        found: list[tuple[Preset, str]] = []
        whole = self.fields(self.root(), WHOLE, allowed=(*TARGETS, SCENE))
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
    body = "".join(f"{line}\n" for line in _lines(load_presets(files, beside=SHIPPED_FILES)))
    if len(body.encode()) > FORM.max_bytes // 2:
        what = f"all own presets together are larger than {FORM.max_bytes // 2} bytes"
        raise ConfigurationError(f"{name_of(files[-1])}:1:1: {what}")
    return FORM.with_hash(body)


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
    found = _load(paths)
    documents = tuple(
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
        (
            *(one.name, one.target, one.difficulty, f"{one.fire_base[2]:g} m"),
            *(len(one.obstacles), len(one.enemies)),
        )
        for one in found
    )
    return FileTable(HEAD, rows, documents)


def preset_count(paths: Sequence[Path]) -> int:
    """How many presets `paths` hold, none of which has the name of another or a shipped one."""
    wanted = FORM.sources(paths) if paths else SHIPPED_FILES
    return len(load_presets(wanted, beside=SHIPPED_FILES))


def drawn_presets(paths: Sequence[Path]) -> "Image":
    """The presets of `paths`, or the shipped ones, on one sheet."""
    from aimbot_lab.worlds.arena.presets.sheet import draw_preset_sheet

    return draw_preset_sheet(_load(paths))


def _load(paths: Sequence[Path]) -> tuple[Preset, ...]:
    return load_presets(FORM.sources(paths) if paths else None)


OWN_PRESETS = KeptFiles(
    key="presets",
    form=FORM,
    read=kept_presets,
    listed=listed_presets,
    count=preset_count,
    draw=drawn_presets,
)
