"""Halls of a user's own: read from files, and kept with a run as one text."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import FileTable, KeptFiles
from aimbot_lab.worlds.arena.presets.files import preset_files
from aimbot_lab.worlds.arena.presets.source import (
    LAYOUTS_LINE,
    MAX_BYTES,
    holds_presets,
    is_kept_name,
    kept_name,
    name_of,
)
from aimbot_lab.worlds.duel.core.state import LEVELS
from aimbot_lab.worlds.duel.layouts.files import SHIPPED, load_layouts, shipped_layouts
from aimbot_lab.worlds.duel.layouts.layout import Layout
from aimbot_lab.worlds.duel.settings import DuelSettings

if TYPE_CHECKING:
    from PIL.Image import Image

HEAD = ("name", "difficulty", "boxes")


def chosen_layouts(settings: DuelSettings) -> tuple[Layout, ...]:
    """The shipped layouts, where they are wanted, and those that `settings` name.

    Raises ConfigurationError for every fault of their files, and for a difficulty without any.
    """
    if not settings.layouts and settings.shipped_layouts:
        return shipped_layouts()
    shipped = (SHIPPED,) if settings.shipped_layouts else ()
    found = load_layouts([*shipped, *preset_files(settings.layouts)])
    fault = lacking_fault(settings, found)
    if fault is not None:
        raise ConfigurationError(fault)
    return found


def lacking_fault(settings: DuelSettings, layouts: Sequence[Layout] | None = None) -> str | None:
    """Which difficulties have no layout under `settings`; None where each has one."""
    if settings.shipped_layouts:
        return None
    found = load_layouts(preset_files(settings.layouts)) if layouts is None else layouts
    there = {layout.difficulty for layout in found}
    lacking = [str(level) for level in range(1, LEVELS + 1) if level not in there]
    if not lacking:
        return None
    where = "env.shipped_layouts is false, and env.layouts holds none"
    return f"no layout of difficulty {', '.join(lacking)} is there: {where}"


def kept_layouts(entries: Sequence[Path | str]) -> str:
    """A layout file, as text, with all that the `entries` of `env.layouts` hold.

    The text of such a text is the same. Raises ConfigurationError with every fault of every file,
    a name that a shipped layout has among them.
    """
    files = preset_files(entries)
    shipped = {layout.name for layout in shipped_layouts()}
    own = [one for one in load_layouts([SHIPPED, *files]) if one.name not in shipped]
    body = "".join(f"{line}\n" for line in _lines(own))
    if len(body.encode()) > MAX_BYTES // 2:
        what = f"all own layouts together are larger than {MAX_BYTES // 2} bytes"
        raise ConfigurationError(f"{name_of(files[-1])}:1:1: {what}")
    return f"{LAYOUTS_LINE}{hashlib.sha256(body.encode()).hexdigest()}\n{body}"


def _lines(layouts: Sequence[Layout]) -> Iterator[str]:
    for level in range(1, LEVELS + 1):
        own = [layout for layout in layouts if layout.difficulty == level]
        if own:
            yield f"{level}:"
        for one in own:
            fields = {"name": one.name, "start": one.start, "boxes": one.boxes}
            yield f"  - {json.dumps(fields, ensure_ascii=False)}"


def listed_layouts(paths: Sequence[Path]) -> FileTable:
    """The layouts of `paths`, or the shipped ones, one a row."""
    found = _load(paths)
    rows = tuple((one.name, one.difficulty, len(one.all_boxes)) for one in found)
    documents = tuple(dict(zip(HEAD, row, strict=True)) for row in rows)
    return FileTable(HEAD, rows, documents)


def layout_count(paths: Sequence[Path]) -> int:
    """How many layouts `paths` hold, none of which has the name of another or a shipped one."""
    if not paths:
        return len(shipped_layouts())
    return len(load_layouts([SHIPPED, *preset_files(paths)])) - len(shipped_layouts())


def drawn_layouts(paths: Sequence[Path]) -> "Image":
    """The layouts of `paths`, or the shipped ones, on one sheet."""
    from aimbot_lab.worlds.duel.layouts.sheet import draw_layout_sheet

    return draw_layout_sheet(_load(paths))


def _load(paths: Sequence[Path]) -> tuple[Layout, ...]:
    return load_layouts(preset_files(paths)) if paths else shipped_layouts()


OWN_LAYOUTS = KeptFiles(
    key="layouts",
    read=kept_layouts,
    holds=holds_presets,
    name=kept_name,
    is_name=is_kept_name,
    listed=listed_layouts,
    count=layout_count,
    draw=drawn_layouts,
)
