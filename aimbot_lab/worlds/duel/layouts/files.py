"""Layout files: halls by difficulty, read and checked, chosen, listed, kept with a run."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from yaml.nodes import Node

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import FileTable, KeptFiles
from aimbot_lab.foundation.yaml_files import WHOLE, FileFormat, FileReader, Source, name_of
from aimbot_lab.worlds.duel.core.state import LEVELS
from aimbot_lab.worlds.duel.layouts.layout import Layout, layout_faults
from aimbot_lab.worlds.duel.settings import DuelSettings

if TYPE_CHECKING:
    from PIL.Image import Image

FORM = FileFormat(
    noun="layout",
    kept="layouts",
    head="# own layouts of the duel, kept with a run; SHA-256 of all lines below: ",
    max_bytes=2**20,
)
SHIPPED = Path(__file__).parent / "layouts.yaml"
KEYS = ("name", "start", "boxes")
DIFFICULTIES = tuple(str(level) for level in range(1, LEVELS + 1))
HEAD = ("name", "difficulty", "boxes")


class _LayoutReader(FileReader):
    """Reads one file of layouts."""

    def layouts(self) -> list[tuple[Layout, str]]:
        """The layouts without a fault, each with its place, `file:line:column`."""
        before, found = len(self.faults), []
        whole = self.fields(self.root(), WHOLE, allowed=DIFFICULTIES)
        for difficulty, listed in whole.items():
            for node in self.items(listed, difficulty):
                layout = self._layout(node, difficulty=int(difficulty))
                if layout is not None:
                    found.append((layout, self.place(node)))
        if not found and len(self.faults) == before:
            self.faults.append(f"{self.path}:1:1: the file holds no layout")
        return found

    def _layout(self, node: Node, *, difficulty: int) -> Layout | None:
        """The layout at `node`, or None where it has a fault."""
        before = len(self.faults)
        fields = self.fields(node, "layout", allowed=KEYS, required=KEYS[:2])
        name = self.name(fields.get("name"), "layout")
        label = f"layout {name}"
        start = self.numbers(fields.get("start"), f"{label}: start", count=2)
        boxes = self.points(fields.get("boxes"), f"{label}: boxes", count=4)
        if len(self.faults) > before:
            return None
        layout = Layout(
            name=name,
            difficulty=difficulty,
            boxes=tuple((box[0], box[1], box[2], box[3]) for box in boxes),
            start=(start[0], start[1]),
        )
        for fault in layout_faults(layout):
            self.fault(node, fault)
        return layout if len(self.faults) == before else None


def load_layouts(files: Sequence[Source]) -> tuple[Layout, ...]:
    """The layouts of `files`, sorted by difficulty.

    Raises ConfigurationError with every fault of every file, each `file:line:column: what`: two
    of one name and difficulties without a layout among them.
    """
    faults: list[str] = []
    places: dict[str, str] = {}
    layouts: list[Layout] = []
    for path in files:
        reader = _LayoutReader(path, faults, form=FORM, is_own=path == SHIPPED)
        for layout, place in reader.layouts():
            if layout.name in places:
                reason = f"another has this name, at {places[layout.name]}"
                faults.append(f"{place}: layout {layout.name}: {reason}")
            places.setdefault(layout.name, place)
            layouts.append(layout)
    if faults:
        raise ConfigurationError(*faults)
    return tuple(sorted(layouts, key=lambda layout: layout.difficulty))


@cache
def shipped_layouts() -> tuple[Layout, ...]:
    """The layouts of this package, at least four of each difficulty."""
    layouts = load_layouts([SHIPPED])
    assert {layout.difficulty for layout in layouts} == set(range(1, LEVELS + 1))
    return layouts


def chosen_layouts(settings: DuelSettings) -> tuple[Layout, ...]:
    """The shipped layouts, where they are wanted, and those that `settings` name.

    Raises ConfigurationError for every fault of their files, and for a difficulty without any.
    """
    if not settings.layouts and settings.shipped_layouts:
        return shipped_layouts()
    shipped = (SHIPPED,) if settings.shipped_layouts else ()
    found = load_layouts([*shipped, *FORM.sources(settings.layouts)])
    fault = lacking_fault(settings, found)
    if fault is not None:
        raise ConfigurationError(fault)
    return found


def lacking_fault(settings: DuelSettings, layouts: Sequence[Layout] | None = None) -> str | None:
    """Which difficulties have no layout under `settings`; None where each has one."""
    if settings.shipped_layouts:
        return None
    found = load_layouts(FORM.sources(settings.layouts)) if layouts is None else layouts
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
    files = FORM.sources(entries)
    shipped = {layout.name for layout in shipped_layouts()}
    own = [one for one in load_layouts([SHIPPED, *files]) if one.name not in shipped]
    body = "".join(f"{line}\n" for line in _lines(own))
    if len(body.encode()) > FORM.max_bytes // 2:
        what = f"all own layouts together are larger than {FORM.max_bytes // 2} bytes"
        raise ConfigurationError(f"{name_of(files[-1])}:1:1: {what}")
    return FORM.with_hash(body)


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
    rows = tuple((one.name, one.difficulty, len(one.all_boxes)) for one in _load(paths))
    return FileTable(HEAD, rows, tuple(dict(zip(HEAD, row, strict=True)) for row in rows))


def layout_count(paths: Sequence[Path]) -> int:
    """How many layouts `paths` hold, none of which has the name of another or a shipped one."""
    if not paths:
        return len(shipped_layouts())
    return len(load_layouts([SHIPPED, *FORM.sources(paths)])) - len(shipped_layouts())


def drawn_layouts(paths: Sequence[Path]) -> "Image":
    """The layouts of `paths`, or the shipped ones, on one sheet."""
    from aimbot_lab.worlds.duel.layouts.sheet import draw_layout_sheet

    return draw_layout_sheet(_load(paths))


def _load(paths: Sequence[Path]) -> tuple[Layout, ...]:
    return load_layouts(FORM.sources(paths)) if paths else shipped_layouts()


OWN_LAYOUTS = KeptFiles(
    key="layouts",
    form=FORM,
    read=kept_layouts,
    listed=listed_layouts,
    count=layout_count,
    draw=drawn_layouts,
)
