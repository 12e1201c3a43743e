"""Target blocks of a curriculum's own: read beside its file, kept with all that comes of it.

In a curriculum that was read, `env.presets` holds the one text of all own blocks, so that nobody
reads their files again; where it is written or compared, the name of that text stands for it,
which holds its hash: `presets-3f2a....yaml`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from os.path import isabs, normpath
from pathlib import Path
from typing import Any

from aimbot_lab.experiment.config.diagnostics import Diagnostic, Origins
from aimbot_lab.experiment.config.key_path import one_line
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.bounded_file import is_of_the_kernel
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import KeptFiles
from aimbot_lab.worlds.registry import type_of

Find = Callable[[str], Path | str]  # the name of a kept text to its file, or to the text itself
MAX_SHOWN = 300  # characters of a path in a fault
RULE = "a relative path begins at the folder of the curriculum's file"


def with_own_presets(
    config: CurriculumFile, *, origins: Origins, find: Find | None = None
) -> CurriculumFile:
    """`config` with the text of its own blocks in the place of their paths.

    Those that a run kept are asked from `find`, where it is given. Raises ConfigurationError with
    every fault, one line each.
    """
    files, entries = type_of(config.env).files, _entries(config)
    if files is None or not entries:
        return config
    folder = Path(origins.file).parent
    faults = [
        Diagnostic(("env", files.key, place), what)
        for place, entry in enumerate(entries)
        if (what := _refusal(entry, folder, find, files))
    ]
    if faults:
        raise ConfigurationError(*origins.lines(faults))
    try:
        text = files.read([_source(entry, folder, find, files) for entry in entries])
    except ConfigurationError as error:
        raise ConfigurationError(*map(one_line, error.faults)) from error
    env: Any = config.env
    return replace(config, env=replace(env, **{files.key: (text,)}))


def own_preset_files(config: CurriculumFile) -> dict[str, str]:
    """The text of its own blocks by the name under which it is kept; empty where it has none."""
    files = type_of(config.env).files
    if files is None:
        return {}
    return {files.name(text): text for text in _entries(config) if "\n" in text}


def plain_settings(config: CurriculumFile) -> dict[str, Any]:
    """`config` as plain data, with names in the place of texts of own blocks."""
    data = asdict(config)
    files = type_of(config.env).files
    if files is not None:
        data["env"][files.key] = files.named(_entries(config))
    return data


def _entries(config: CurriculumFile) -> tuple[str, ...]:
    """The files, or the kept text, that the world's settings name."""
    files = type_of(config.env).files
    return () if files is None else tuple(getattr(config.env, files.key))


def _refusal(entry: str, folder: Path, find: Find | None, files: KeptFiles) -> str | None:
    """What is wrong with the path `entry`, None where there is such a file or folder."""
    if "\n" in entry or "\0" in entry or (find is not None and files.is_name(entry)):
        return None  # what is wrong with these is found where they are read
    try:
        if (folder / entry).exists():
            return _useless(folder / entry, files)
    except OSError as error:  # too long a name, a folder that may not be looked into
        shown = entry if len(entry) <= MAX_SHOWN else f"{entry[:MAX_SHOWN]}..."
        return f"cannot be read: {error.strerror}: {shown}"
    elsewhere = "" if isabs(entry) else f"; {RULE}"
    if not isabs(entry) and Path(entry).exists():
        elsewhere += ", not at the working directory, where there is one"
    path = normpath(folder / entry)
    shown = path if len(path) <= MAX_SHOWN else f"{path[:MAX_SHOWN]}..."
    return f"there is no file or folder {shown}{elsewhere}"


def _useless(path: Path, files: KeptFiles) -> str | None:
    """Why no preset can come from what is at `path`, None where one might."""
    if path.is_dir():
        return None if files.holds(path) else "the folder holds no *.yaml or *.yml file"
    regular = path.is_file() and not is_of_the_kernel(path)
    return None if regular else "is not a regular file"


def _source(entry: str, folder: Path, find: Find | None, files: KeptFiles) -> Path | str:
    if "\n" in entry:
        return entry
    if find is not None and files.is_name(entry):
        with suppress(KeyError):
            return find(entry)
    return folder / entry
