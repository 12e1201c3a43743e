"""The arena's test mode: a menu of things to place, buttons, and scenes as files."""

from collections.abc import Sequence

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.scenes import MenuEntry, Placement, SceneButton
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.scenes import files
from aimbot_lab.worlds.arena.scenes.menu import BUTTONS, CLEAR, ENEMY, menu_of
from aimbot_lab.worlds.arena.scenes.row_editor import RowEditor


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
