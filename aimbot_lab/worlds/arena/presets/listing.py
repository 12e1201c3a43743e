"""What preset files hold, counted, listed and drawn; the shipped ones where none are named."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.world_type import FileTable
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.presets.files import SHIPPED_FILES, load_presets, preset_files

if TYPE_CHECKING:
    from PIL.Image import Image

HEAD = ("name", "target", "difficulty", "FireBase", "obstacles", "enemies")


def listed_presets(paths: Sequence[Path]) -> FileTable:
    """The presets of `paths`, one a row."""
    found = _load(paths)
    return FileTable(HEAD, tuple(map(_row, found)), tuple(map(_document, found)))


def preset_count(paths: Sequence[Path]) -> int:
    """How many presets `paths` hold, none of which has the name of another or a shipped one."""
    wanted = preset_files(paths) if paths else SHIPPED_FILES
    return len(load_presets(wanted, beside=SHIPPED_FILES))


def drawn_presets(paths: Sequence[Path]) -> "Image":
    """The presets of `paths` on one sheet."""
    from aimbot_lab.worlds.arena.presets.sheet import draw_preset_sheet

    return draw_preset_sheet(_load(paths))


def _load(paths: Sequence[Path]) -> tuple[Preset, ...]:
    return load_presets(preset_files(paths) if paths else None)


def _document(preset: Preset) -> dict[str, Any]:
    return {
        "name": preset.name,
        "target": preset.target,
        "difficulty": preset.difficulty,
        "fire_base_diameter": preset.fire_base[2],
        "obstacles": len(preset.obstacles),
        "enemies": len(preset.enemies),
    }


def _row(preset: Preset) -> tuple[str | int, ...]:
    return (
        preset.name,
        preset.target,
        preset.difficulty,
        f"{preset.fire_base[2]:g} m",
        len(preset.obstacles),
        len(preset.enemies),
    )
