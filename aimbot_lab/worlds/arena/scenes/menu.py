"""What a person can place in the arena, and the buttons of its test mode."""

from collections.abc import Sequence
from typing import NamedTuple

from aimbot_lab.foundation.scenes import MenuEntry, Outline, SceneButton
from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.settings import ArenaSettings

ENEMY, FREE_MODE, STAY_MODE, CLEAR = "enemy", "free", "stay", "clear"
HALF = BLOCK_SIZE / 2
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
