"""A project to begin with: a curriculum, a sweep over it, a README, a .gitignore."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.shipped.named_files import SHIPPED

FILES: Mapping[str, str] = MappingProxyType(
    {  # in the project: among the shipped files
        "README.md": "project/README",
        ".gitignore": "project/gitignore",
        "curricula/walk.yaml": "project/walk.yaml",
        "curricula/curriculum.schema.json": "curricula/curriculum.schema.json",
        "sweeps/walk_rewards.yaml": "project/walk_rewards.yaml",
        "sweeps/sweep.schema.json": "sweeps/sweep.schema.json",
    }
)
DATA_FOLDER = ".aimbot-lab"  # made here, so that a project inside another one has its own


def write_project(folder: Path) -> list[Path]:
    """Write the project into `folder`, which is made where it is missing; the files written.

    Raises ConfigurationError, one line, where one of the files is there already, or where the disk
    refuses; then nothing that was written is left.
    """
    there = [name for name in FILES if os.path.lexists(folder / name)]
    if there:
        raise ConfigurationError(f"{folder}: has {', '.join(there)} already; name another folder")
    made: list[Path] = []
    try:
        for name, source in FILES.items():
            _make_folder((folder / name).parent, made)
            _write(folder / name, (SHIPPED / source).read_bytes(), made)
        _make_folder(folder / DATA_FOLDER, made)
    except BaseException as error:
        _take_back(made)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise ConfigurationError(f"{folder}: can't be written: {reason}") from error
        raise
    return [folder / name for name in FILES]


def _make_folder(path: Path, made: list[Path]) -> None:
    if path.is_dir():
        return
    if path.parent != path:
        _make_folder(path.parent, made)
    path.mkdir()
    made.append(path)


def _write(path: Path, content: bytes, made: list[Path]) -> None:
    with path.open("xb") as stream:
        made.append(path)
        stream.write(content)


def _take_back(made: list[Path]) -> None:
    for path in reversed(made):
        with suppress(OSError):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
