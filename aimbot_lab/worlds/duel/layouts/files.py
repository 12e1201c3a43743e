"""Layouts as data: a YAML file of halls by difficulty, every fault with line and column."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from yaml.nodes import Node

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.arena.presets.files import DIFFICULTIES, WHOLE, FileReader
from aimbot_lab.worlds.arena.presets.source import Source
from aimbot_lab.worlds.duel.core.state import LEVELS
from aimbot_lab.worlds.duel.layouts.check import layout_faults
from aimbot_lab.worlds.duel.layouts.layout import Layout

SHIPPED = Path(__file__).parent / "layouts.yaml"
KEYS = ("name", "start", "boxes")


class LayoutReader(FileReader):
    """Reads one file of layouts and adds a line to `faults` for everything wrong with it."""

    def layouts(self) -> list[tuple[Layout, str]]:
        """The layouts without a fault, each with its place, `file:line:column`."""
        before, found = len(self.faults), []
        whole = self.fields(self.root(), WHOLE, allowed=DIFFICULTIES)
        for difficulty, listed in whole.items():
            for node in self.items(listed, difficulty):
                layout = self.layout(node, difficulty=int(difficulty))
                if layout is not None:
                    found.append((layout, self.place(node)))
        if not found and len(self.faults) == before:
            self.faults.append(f"{self.path}:1:1: the file holds no layout")
        return found

    def layout(self, node: Node, *, difficulty: int) -> Layout | None:
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
        for layout, place in LayoutReader(path, faults).layouts():
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
