"""Scenes of the arena's test mode as YAML files, and its menu of things to place.

A file says what stands on a row's floor, where the agent is, and what its target is:

    scene:
      agent: {x: 2.0, z: 2.0, yaw: 0.0}      # m, m, degrees to the right of +z
      blocks: [{target: goto, name: lone crate, x: 30.0, z: 20.0, turns: 1}]
      enemies: [[12.0, 7.5]]                 # beside those of blocks
      target: goto                           # of the agent; left out: Stay
      block: 0                               # of `blocks`, that it is about

A scene of one block also holds that block as a preset, so that `env.presets` takes the file.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import degrees, radians
from pathlib import Path
from typing import NamedTuple

from yaml.nodes import Node, ScalarNode

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import MenuEntry, Outline, Placement, SceneButton
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.yaml_files import WHOLE, FileReader, FileText
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE, TARGETS
from aimbot_lab.worlds.arena.presets import (
    BLOCK_TARGETS,
    FORM,
    SCENE,
    Preset,
    preset_faults,
    preset_fields,
)
from aimbot_lab.worlds.arena.scenes.placing import HALF, NOBODY, place_in_block
from aimbot_lab.worlds.arena.scenes.row_editor import RowEditor
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import NAMES

ENEMY, FREE_MODE, STAY_MODE, CLEAR = "enemy", "free", "stay", "clear"
BUTTONS = (
    SceneButton(FREE_MODE, "FreeMode", "The target is Free: shoot every enemy. Without one: Stay."),
    SceneButton(STAY_MODE, "StayMode", "The target is Stay: nothing to do, no end."),
    SceneButton(CLEAR, "ClearGame", "Take all enemies and blocks away; the target is Stay."),
)


def menu_of(
    settings: ArenaSettings, kinds: Mapping[str, Sequence[Preset]]
) -> tuple[MenuEntry, ...]:
    """Enemy, then every one of `kinds`, target and difficulty, with its presets."""
    enemy = Outline("enemy", discs=((0.0, 0.0, settings.enemy_radius),))
    entries = [MenuEntry(ENEMY, "Enemy", (enemy,), turns=False)]
    for key, found in kinds.items():
        label = f"{found[0].target.capitalize()} block {found[0].difficulty}"
        outlines = tuple(_outline(preset, settings.enemy_radius) for preset in found)
        entries.append(MenuEntry(key, label, outlines, turns=True))
    return tuple(entries)


def _outline(preset: Preset, enemy_radius: float) -> Outline:
    x, z, diameter = preset.fire_base
    return Outline(
        name=preset.name,
        boxes=tuple((a - HALF, b - HALF, c - HALF, d - HALF) for a, b, c, d in preset.obstacles),
        discs=tuple((a - HALF, b - HALF, enemy_radius) for a, b in preset.enemies),
        circle=(x - HALF, z - HALF, diameter / 2),
        side=BLOCK_SIZE,
    )


class ArenaEditor(RowEditor):
    """A `RowEditor` that knows what its edits are called on a page.

    Placing a block assigns its target at once; placing an enemy assigns nothing.
    """

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        self._kinds: dict[str, list[Preset]] = {}
        for preset in arena.presets:
            self._kinds.setdefault(f"{preset.target} {preset.difficulty}", []).append(preset)
        self._menu = menu_of(arena.settings, self._kinds)

    @property
    def menu(self) -> Sequence[MenuEntry]:
        """Enemy, and a block of each target and difficulty."""
        return self._menu

    @property
    def buttons(self) -> Sequence[SceneButton]:
        """FreeMode, StayMode, ClearGame."""
        return BUTTONS

    def fault(self, row: int, placement: Placement) -> str | None:
        """Why `place` would refuse; None: it would not."""
        at = placement.x, placement.z
        if (placement.key, placement.variant) == (ENEMY, 0):
            return self.enemy_fault(row, at)
        return self.block_fault(row, at, preset=self._preset_of(placement))

    def place(self, row: int, placement: Placement) -> None:
        """Place an enemy, or a block whose target is assigned at once."""
        at = placement.x, placement.z
        if (placement.key, placement.variant) == (ENEMY, 0):
            self.place_enemy(row, at)
            return
        target, name = self._preset_of(placement)
        block = self.place_block(row, at, preset=(target, name), turns=placement.turns)
        self.assign(row, target, block=block)

    def press(self, row: int, button: str) -> None:
        """FreeMode and StayMode assign a target, ClearGame takes everything away."""
        if button not in [one.key for one in BUTTONS]:
            raise MisuseError(f"button: there is no button {button!r}")
        if button == CLEAR:
            self.clear(row)
        else:
            self.assign(row, button)

    def text(self, row: int, name: str) -> str:
        """The row as a YAML file, which `load` reads."""
        return scene_text(self, row, name)

    def load(self, row: int, text: str) -> None:
        """Make the row what the YAML file `text` says.

        Raises ConfigurationError with every fault, each with its line and column.
        """
        load_scene(self, row, text)

    def _preset_of(self, placement: Placement) -> tuple[str, str]:
        """Target and name of the preset that is to be placed."""
        found = self._kinds.get(placement.key, ())
        if not 0 <= placement.variant < len(found):
            raise MisuseError(f"menu: there is no {placement.key!r}, variant {placement.variant}")
        return found[placement.variant].target, found[placement.variant].name


KEYS = ("agent", "blocks", "enemies", "target", "block")
AGENT_KEYS = ("x", "z", "yaw")
BLOCK_KEYS = ("target", "name", "x", "z", "turns")
HEAD = "# A scene of aimbot-lab's arena. One of a single block is a preset file too (env.presets)."


class BlockPlace(NamedTuple):
    """A block of a scene: its preset, its middle in metres, quarter turns."""

    target: str
    name: str
    x: float
    z: float
    turns: int


class ArenaScene(NamedTuple):
    """What a scene's file says."""

    agent: tuple[float, float, float] | None  # m, m, degrees; None: it stays where it is
    blocks: tuple[BlockPlace, ...]
    enemies: tuple[tuple[float, float], ...]  # m, that stand beside those of blocks
    target: str
    block: int | None  # that the target is about


def scene_of(editor: RowEditor, row: int) -> ArenaScene:
    """What stands in `row`; the enemies that are down are left out but for those of blocks."""
    record, state, presets = editor.record(row), editor.arena.state, editor.arena.presets
    x, z = state.position[row].tolist()
    return ArenaScene(
        agent=(x, z, round(degrees(float(state.yaw[row])), 9)),
        blocks=tuple(
            BlockPlace(
                presets[block.preset].target,
                presets[block.preset].name,
                block.x + HALF,
                block.z + HALF,
                block.turns,
            )
            for block in record.blocks
        ),
        enemies=tuple(_loose(editor, row)),
        target=NAMES[int(state.target[row])],
        block=None if record.assigned == NOBODY else record.assigned,
    )


def scene_text(editor: RowEditor, row: int, name: str) -> str:
    """What stands in `row` as a YAML file; `name` is that of its block as a preset."""
    scene, lines = scene_of(editor, row), [HEAD]
    if len(scene.blocks) == 1:
        preset = scene_preset(editor, row, name)
        fields = json.dumps(preset_fields(preset), ensure_ascii=False)
        lines += [f"{preset.target}:", f"  {preset.difficulty}:", f"  - {fields}"]
    lines.append(f"{SCENE}:")
    if scene.agent is not None:
        lines.append(f"  agent: {_mapping(AGENT_KEYS, scene.agent)}")
    lines.append("  blocks:" if scene.blocks else "  blocks: []")
    lines += [f"  - {_mapping(BLOCK_KEYS, block)}" for block in scene.blocks]
    lines.append(f"  enemies: {json.dumps(scene.enemies)}")
    lines.append(f"  target: {scene.target}")
    lines += [] if scene.block is None else [f"  block: {scene.block}"]
    return "\n".join(lines) + "\n"


def scene_preset(editor: RowEditor, row: int, name: str) -> Preset:
    """The only block of `row` as a preset of that name, with the enemies in its FireBase.

    Where those would be against the rules of presets, only with its own.
    """
    block = editor.record(row).blocks[0]
    own = editor.arena.presets[block.preset]
    plain = Preset(name, own.target, own.difficulty, own.fire_base, own.obstacles, own.enemies)
    more = tuple(place_in_block(block, place) for place in _loose(editor, row))
    x, z, diameter = own.fire_base
    inside = tuple(e for e in more if (e[0] - x) ** 2 + (e[1] - z) ** 2 <= diameter**2 / 4)
    full = Preset(
        name, own.target, own.difficulty, own.fire_base, own.obstacles, (*own.enemies, *inside)
    )
    return plain if preset_faults(full) else full


def read_scene(text: str, name: str = "scene.yaml") -> ArenaScene:
    """The scene in `text`. Raises ConfigurationError with every fault, `name:line:column: what`."""
    faults: list[str] = []
    scene = _SceneReader(FileText(Path(name), text), faults, form=FORM).scene()
    if faults or scene is None:
        raise ConfigurationError(*(faults or [f"{name}:1:1: the file holds no scene"]))
    return scene


def load_scene(editor: RowEditor, row: int, text: str) -> None:
    """Make `row` what `text` says.

    Raises ConfigurationError for faults of the text and MisuseError where something does not fit;
    then the arena is as it was.
    """
    scene, before = read_scene(text), editor.arena.snapshot()
    try:
        _build(editor, row, scene)
    except MisuseError as error:
        editor.arena.restore(before)
        raise MisuseError(f"scene: {error}") from error


def _build(editor: RowEditor, row: int, scene: ArenaScene) -> None:
    editor.clear(row)
    if scene.agent is not None:
        x, z, yaw = scene.agent
        editor.place_agent(row, (x, z), yaw=radians(yaw))
    for block in scene.blocks:
        key = block.target, block.name
        editor.place_block(row, (block.x, block.z), preset=key, turns=block.turns)
    for place in scene.enemies:
        editor.place_enemy(row, place)
    editor.assign(row, scene.target, block=scene.block)


def _loose(editor: RowEditor, row: int) -> Iterator[tuple[float, float]]:
    """The living enemies of `row` that came with no block."""
    state = editor.arena.state
    for k, owner in enumerate(editor.record(row).owners):
        if owner == NOBODY and state.enemy_hits_left[row, k] > 0:
            x, z = state.enemies[row, k].tolist()
            yield x, z


def _mapping(keys: tuple[str, ...], values: tuple[object, ...]) -> str:
    pairs = zip(keys, values, strict=True)
    return "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in pairs) + "}"


class _SceneReader(FileReader):
    """Reads the scene of a file and lists what is wrong with it."""

    def scene(self) -> ArenaScene | None:
        """The scene, None where there is none or it has a fault."""
        whole = self.fields(self.root(), WHOLE, allowed=(*BLOCK_TARGETS, SCENE))
        if SCENE not in whole:
            return None
        fields = self.fields(whole[SCENE], SCENE, allowed=KEYS)
        agent = None
        if "agent" in fields:
            at = self.fields(fields["agent"], "agent", allowed=AGENT_KEYS, required=AGENT_KEYS)
            x, z, yaw = (self.number(at.get(key), f"agent: {key}") for key in AGENT_KEYS)
            agent = x, z, yaw
        blocks = [
            self._block(node, f"blocks: number {index + 1}")
            for index, node in enumerate(self.items(fields.get("blocks"), "blocks"))
        ]
        enemies = self.points(fields.get("enemies"), "enemies", count=2)
        target = self._word(fields.get("target"), "target", allowed=tuple(TARGETS)) or "stay"
        block = self.whole(fields.get("block"), "block", most=max(len(blocks) - 1, 0))
        if block is not None and not blocks:
            self.fault(fields["block"], "block: must be left out: there is no block")
        if self.faults:
            return None
        places = tuple((place[0], place[1]) for place in enemies)
        return ArenaScene(agent, tuple(blocks), places, target, block)

    def _block(self, node: Node, where: str) -> BlockPlace:
        fields = self.fields(node, where, allowed=BLOCK_KEYS, required=BLOCK_KEYS[:4])
        return BlockPlace(
            target=self._word(fields.get("target"), f"{where}: target", allowed=BLOCK_TARGETS),
            name=self.name(fields.get("name"), where),
            x=self.number(fields.get("x"), f"{where}: x"),
            z=self.number(fields.get("z"), f"{where}: z"),
            turns=self.whole(fields.get("turns"), f"{where}: turns", most=3) or 0,
        )

    def _word(self, node: Node | None, where: str, *, allowed: tuple[str, ...]) -> str:
        if node is None:
            return ""
        if not isinstance(node, ScalarNode) or node.value not in allowed:
            self.fault(node, f"{where}: must be one of {', '.join(allowed)}")
            return ""
        return str(node.value)
