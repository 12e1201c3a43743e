"""What map files hold, counted, listed and drawn; the shipped ones where none are named."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import FileTable, KeptFiles
from aimbot_lab.worlds.gorge.maps.files import SHIPPED, SHIPPED_FILES, load_map
from aimbot_lab.worlds.gorge.maps.grid import MAX_SITES, GorgeMap
from aimbot_lab.worlds.gorge.maps.kept_text import kept_map, map_text
from aimbot_lab.worlds.gorge.maps.source import is_kept_name, kept_name

if TYPE_CHECKING:
    from PIL.Image import Image

HEAD = ("name", "start", "end", "shortest way", "obstacles", "sites", "points", "hash")
HASH_DIGITS = 6  # that a table shows
DEFAULT_SHARE = 0.4  # of obstacles on a map that is made


def listed_maps(paths: Sequence[Path]) -> FileTable:
    """The maps of `paths`, one a row."""
    documents = tuple(map(_document, _load(paths)))
    return FileTable(HEAD, tuple(map(_row, documents)), documents)


def map_count(paths: Sequence[Path]) -> int:
    """How many maps `paths` hold, each fit to play on."""
    return len(_load(paths))


def drawn_maps(paths: Sequence[Path]) -> "Image":
    """The maps of `paths` on one sheet."""
    from aimbot_lab.worlds.gorge.maps.sheet import draw_map_sheet

    return draw_map_sheet(_load(paths))


def made_map(seed: int, numbers: Mapping[str, float]) -> str:
    """The file of a generated map; `numbers` may hold `obstacle_share` and `sites`.

    Raises ConfigurationError where no map with that share of obstacles is found.
    """
    from aimbot_lab.worlds.gorge.maps.generated import generated_maps

    (grid,) = generated_maps(
        1,
        seed=seed,
        obstacle_share=numbers.get("obstacle_share", DEFAULT_SHARE),
        sites=int(numbers.get("sites", MAX_SITES)),
    )
    return map_text(grid)


def _kept(entries: Sequence[Path | str]) -> str:
    """The one map that `entries` name, as the text that a run keeps."""
    (entry,) = entries
    return kept_map(entry)


def _map_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])


MAP_FILES = KeptFiles(
    key="map",
    read=_kept,
    holds=lambda folder: bool(_map_files(folder)),
    name=kept_name,
    is_name=is_kept_name,
    listed=listed_maps,
    count=map_count,
    draw=drawn_maps,
    single=True,
    is_own=lambda entry: bool(entry) and entry not in SHIPPED,
    make=made_map,
)


def _load(paths: Sequence[Path]) -> list[GorgeMap]:
    """The maps of files and folders. Raises ConfigurationError with every fault of every file."""
    faults: list[str] = []
    found: list[GorgeMap] = []
    for path in dict.fromkeys(_files(paths, faults) if paths else SHIPPED_FILES):
        try:
            found.append(load_map(path))
        except ConfigurationError as error:
            faults += error.faults
    if faults:
        raise ConfigurationError(*faults)
    return found


def _files(paths: Sequence[Path], faults: list[str]) -> list[Path]:
    """The files of `paths`; adds a line to `faults` for a folder that holds none."""
    files = []
    for path in paths:
        if path.is_dir():
            inside = _map_files(path)
            if not inside:
                faults.append(f"{path}: the folder holds no *.yaml or *.yml file")
            files += inside
        else:
            files.append(path)
    return files


def _document(grid: GorgeMap) -> dict[str, Any]:
    from aimbot_lab.worlds.gorge.maps.check import shortest_way

    return {
        "name": grid.name,
        "start": list(grid.start),
        "end": list(grid.end),
        "shortest_way": shortest_way(grid),
        "obstacle_share": float(grid.walls.mean()),
        "sites": grid.sites.tolist(),
        "points": grid.points.tolist(),
        "hash": grid.content_hash,
    }


def _row(document: Mapping[str, Any]) -> tuple[str | int, ...]:
    return (
        document["name"],
        "{}, {}".format(*document["start"]),
        "{}, {}".format(*document["end"]),
        f"{document['shortest_way']} steps",
        f"{document['obstacle_share']:.1%}",
        len(document["sites"]),
        f"{sum(document['points']):g}",
        document["hash"][:HASH_DIGITS],
    )
