"""The presets of a user's own as one text, which a run keeps and from which it repeats."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.presets.files import SHIPPED_FILES, load_presets, preset_files
from aimbot_lab.worlds.arena.presets.source import HASH_LINE, MAX_BYTES, name_of


def kept_presets(entries: Sequence[Path | str]) -> str:
    """A preset file, as text, with all that the `entries` of `env.presets` hold, in that order.

    The text of such a text is the same. Raises ConfigurationError with every fault of every file.
    """
    files = preset_files(entries)
    presets = load_presets(files, beside=SHIPPED_FILES)
    body = "".join(f"{line}\n" for line in _lines(presets))
    if len(body.encode()) > MAX_BYTES // 2:
        what = f"all own presets together are larger than {MAX_BYTES // 2} bytes"
        raise ConfigurationError(f"{name_of(files[-1])}:1:1: {what}")
    return f"{HASH_LINE}{hashlib.sha256(body.encode()).hexdigest()}\n{body}"


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
