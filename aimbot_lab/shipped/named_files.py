"""Curricula and sweeps of the wheel, found by name, and a new project made of them."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import nearest_name, shortened

SHIPPED = Path(__file__).parent
SUFFIXES = (".yaml", ".yml")
MAX_NAME = 80  # characters of a name that a refusal repeats
STDIN = "-"


class Kind(NamedTuple):
    """A kind of file: what it is called, and the folder that a project keeps it in."""

    noun: str
    folder: str


CURRICULUM = Kind("curriculum", "curricula")
SWEEP = Kind("sweep", "sweeps")


def find_file(named: str, *kinds: Kind) -> str:
    """The path of the file that `named` means, a path or a name: one of `kinds`.

    A path (it has a separator or ends with .yaml or .yml) is taken as it is, and so is the name of
    a file in the working directory. NAME is else FOLDER/NAME.yaml or NAME.yaml in the working
    directory (FOLDER is that of the kind), then the shipped file of that name.
    Raises ConfigurationError, one line, for a name that no file has, and for a path to a shipped
    file that is not there.
    """
    if is_path(named):
        _refuse_shipped_elsewhere(named, kinds)
        return named
    if named == STDIN or (os.path.exists(named) and not os.path.isdir(named)):
        return named
    found = next((path for path in _candidates(named, kinds) if os.path.isfile(path)), None)
    if found is not None:
        return found
    if os.path.isdir(named):
        return named
    raise ConfigurationError(_unknown(named, kinds))


def is_path(named: str) -> bool:
    """Whether `named` is a path, not a name."""
    return os.sep in named or named.endswith(SUFFIXES)


def shipped_names(kind: Kind) -> list[str]:
    """The names of the shipped files of that kind, sorted."""
    return sorted(path.stem for path in (SHIPPED / kind.folder).glob("*.yaml"))


def own_files(kind: Kind) -> list[str]:
    """The files in the working directory's folder of that kind, sorted."""
    here = Path(kind.folder)
    return sorted(str(path) for path in here.glob("*") if path.suffix in SUFFIXES)


def _refuse_shipped_elsewhere(path: str, kinds: tuple[Kind, ...]) -> None:
    """Who has no clone of the repository has no folder curricula: tell the name that does."""
    name = Path(path).stem
    for kind in kinds:
        inside = path in {os.path.join(kind.folder, name + suffix) for suffix in SUFFIXES}
        if inside and name in shipped_names(kind) and not os.path.exists(path):
            raise ConfigurationError(
                f"{path}: there is no such file here; the shipped {kind.noun} is found by its "
                f"name: {name}"
            )


def _candidates(named: str, kinds: tuple[Kind, ...]) -> Iterator[str]:
    yield from (os.path.join(kind.folder, f"{named}.yaml") for kind in kinds)
    yield f"{named}.yaml"
    yield from (str(SHIPPED / kind.folder / f"{named}.yaml") for kind in kinds)


def _unknown(named: str, kinds: tuple[Kind, ...]) -> str:
    """What was looked for, and the name that is nearest, or all shipped ones."""
    shown = shortened(named, MAX_NAME)
    noun = " or ".join(kind.noun for kind in kinds)
    files = ", ".join(os.path.join(kind.folder, f"{shown}.yaml") for kind in kinds)
    names = [name for kind in kinds for name in shipped_names(kind)]
    folders = (Path(), *(Path(kind.folder) for kind in kinds))
    own = [path.stem for folder in folders for path in folder.glob("*.yaml")]
    return (
        f"no {noun} {shown!r}: there is no {files} or {shown}.yaml in the working directory, and "
        f"no shipped one ({nearest_name(named, [*own, *names], 'name')}); a path works, too"
    )


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
