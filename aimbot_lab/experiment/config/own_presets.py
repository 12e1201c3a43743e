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
from aimbot_lab.worlds.arena.presets.kept_text import kept_presets
from aimbot_lab.worlds.arena.presets.source import (
    holds_presets,
    is_kept_name,
    kept_name,
    named_entries,
)

Find = Callable[[str], Path | str]  # the name of a kept text to its file, or to the text itself
MAX_SHOWN = 300  # characters of a path in a fault
KEY = ("env", "presets")
RULE = "a relative path begins at the folder of the curriculum's file"


def with_own_presets(
    config: CurriculumFile, *, origins: Origins, find: Find | None = None
) -> CurriculumFile:
    """`config` with the text of its own blocks in the place of their paths.

    Those that a run kept are asked from `find`, where it is given. Raises ConfigurationError with
    every fault, one line each.
    """
    if not config.env.presets:
        return config
    folder = Path(origins.file).parent
    faults = [
        Diagnostic((*KEY, place), what)
        for place, entry in enumerate(config.env.presets)
        if (what := _refusal(entry, folder, find))
    ]
    if faults:
        raise ConfigurationError(*origins.lines(faults))
    try:
        text = kept_presets([_source(entry, folder, find) for entry in config.env.presets])
    except ConfigurationError as error:
        raise ConfigurationError(*map(one_line, error.faults)) from error
    return replace(config, env=replace(config.env, presets=(text,)))


def own_preset_files(config: CurriculumFile) -> dict[str, str]:
    """The text of its own blocks by the name under which it is kept; empty where it has none."""
    return {kept_name(text): text for text in config.env.presets if "\n" in text}


def plain_settings(config: CurriculumFile) -> dict[str, Any]:
    """`config` as plain data, with names in the place of texts of own blocks."""
    data = asdict(config)
    data["env"]["presets"] = named_entries(config.env.presets)
    return data


def _refusal(entry: str, folder: Path, find: Find | None) -> str | None:
    """What is wrong with the path `entry`, None where there is such a file or folder."""
    if "\n" in entry or "\0" in entry or (find is not None and is_kept_name(entry)):
        return None  # what is wrong with these is found where they are read
    try:
        if (folder / entry).exists():
            return _useless(folder / entry)
    except OSError as error:  # too long a name, a folder that may not be looked into
        shown = entry if len(entry) <= MAX_SHOWN else f"{entry[:MAX_SHOWN]}..."
        return f"cannot be read: {error.strerror}: {shown}"
    elsewhere = "" if isabs(entry) else f"; {RULE}"
    if not isabs(entry) and Path(entry).exists():
        elsewhere += ", not at the working directory, where there is one"
    path = normpath(folder / entry)
    shown = path if len(path) <= MAX_SHOWN else f"{path[:MAX_SHOWN]}..."
    return f"there is no file or folder {shown}{elsewhere}"


def _useless(path: Path) -> str | None:
    """Why no preset can come from what is at `path`, None where one might."""
    if path.is_dir():
        return None if holds_presets(path) else "the folder holds no *.yaml or *.yml file"
    regular = path.is_file() and not is_of_the_kernel(path)
    return None if regular else "is not a regular file"


def _source(entry: str, folder: Path, find: Find | None) -> Path | str:
    if "\n" in entry:
        return entry
    if find is not None and is_kept_name(entry):
        with suppress(KeyError):
            return find(entry)
    return folder / entry
