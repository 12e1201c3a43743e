"""A map as the text of a file, and as the text that a run keeps."""

import json
from pathlib import Path

from aimbot_lab.worlds.gorge.maps.files import load_map
from aimbot_lab.worlds.gorge.maps.grid import GorgeMap
from aimbot_lab.worlds.gorge.maps.rows import rows_of
from aimbot_lab.worlds.gorge.maps.source import with_hash


def map_text(grid: GorgeMap) -> str:
    """The file of `grid`, which reads back as the same map."""
    points = ", ".join(f"{value:.0f}" for value in grid.points)
    rows = "".join(f"  {line}\n" for line in rows_of(grid))
    name = json.dumps(grid.name, ensure_ascii=False)
    return f"name: {name}\npoints: [{points}]\nrows: |\n{rows}"


def kept_map(entry: str | Path) -> str:
    """The map that `entry` names as text, from which a run repeats; of that text the same.

    Raises ConfigurationError with every fault of the file.
    """
    return with_hash(map_text(load_map(entry)))
