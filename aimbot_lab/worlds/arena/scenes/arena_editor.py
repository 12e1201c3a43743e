"""The arena's test mode: a menu of things to place, buttons, and scenes as files."""

from collections.abc import Sequence
from typing import NamedTuple

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.scenes import MenuEntry, Outline, Placement, SceneButton
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE
from aimbot_lab.worlds.arena.presets import Preset
from aimbot_lab.worlds.arena.scenes import files
from aimbot_lab.worlds.arena.scenes.placing import HALF
from aimbot_lab.worlds.arena.scenes.row_editor import RowEditor
from aimbot_lab.worlds.arena.settings import ArenaSettings

ENEMY, FREE_MODE, STAY_MODE, CLEAR = "enemy", "free", "stay", "clear"


BUTTONS = (
    SceneButton(FREE_MODE, "FreeMode", "The target is Free: shoot every enemy. Without one: Stay."),
    SceneButton(STAY_MODE, "StayMode", "The target is Stay: nothing to do, no end."),
    SceneButton(CLEAR, "ClearGame", "Take all enemies and blocks away; the target is Stay."),
)


class Menu(NamedTuple):
    """The entries, and which presets those of blocks stand for."""

    entries: tuple[MenuEntry, ...]
    presets: dict[str, tuple[Preset, ...]]  # by an entry's key


def menu_of(settings: ArenaSettings, presets: Sequence[Preset]) -> Menu:
    """Enemy, then every target and difficulty of which there are presets."""
    kinds: dict[str, list[Preset]] = {}
    for preset in presets:
        kinds.setdefault(f"{preset.target} {preset.difficulty}", []).append(preset)
    enemy = Outline("enemy", discs=((0.0, 0.0, settings.enemy_radius),))
    entries = [MenuEntry(ENEMY, "Enemy", (enemy,), turns=False)]
    for key, found in kinds.items():
        label = f"{found[0].target.capitalize()} block {found[0].difficulty}"
        outlines = tuple(_outline(preset, settings.enemy_radius) for preset in found)
        entries.append(MenuEntry(key, label, outlines, turns=True))
    return Menu(tuple(entries), {key: tuple(found) for key, found in kinds.items()})


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
        self._menu = menu_of(arena.settings, arena.presets)

    @property
    def menu(self) -> Sequence[MenuEntry]:
        """Enemy, and a block of each target and difficulty."""
        return self._menu.entries

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
            raise MisuseError(f"button: there is none of the name {button!r}")
        if button == CLEAR:
            self.clear(row)
        else:
            self.assign(row, button)

    def text(self, row: int, name: str) -> str:
        """The row as a YAML file, which `load` reads."""
        return files.scene_text(self, row, name)

    def load(self, row: int, text: str) -> None:
        """Make the row what the YAML file `text` says.

        Raises ConfigurationError with every fault, each with its line and column.
        """
        files.load_scene(self, row, text)

    def _preset_of(self, placement: Placement) -> tuple[str, str]:
        """Target and name of the preset that is to be placed."""
        found = self._menu.presets.get(placement.key, ())
        if not 0 <= placement.variant < len(found):
            raise MisuseError(f"menu: there is no {placement.key!r}, variant {placement.variant}")
        return found[placement.variant].target, found[placement.variant].name
