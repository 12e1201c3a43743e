"""Files that a world names: found beside the curriculum, kept with all that comes of it.

Such are target blocks of one's own and maps. In a curriculum that was read, the setting holds their
text, so that the files are read once; where it is written or compared, the name of that text stands
for it, which holds its hash: `presets-3f2a....yaml`.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from os.path import isabs, normpath
from pathlib import Path
from typing import Any

from aimbot_lab.curriculum.settings import lesson_scenario
from aimbot_lab.experiment.config.diagnostics import Diagnostic, Origins
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.bounded_file import is_of_the_kernel
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.world_type import KeptFiles
from aimbot_lab.foundation.yaml_files import yaml_files
from aimbot_lab.tracking.address import without_password
from aimbot_lab.worlds.registry import knows_spec, named_type, type_of

Find = Callable[[str], Path | str]  # the name of a kept text to its file, or to the text itself
MAX_SHOWN = 300  # characters of a path in a fault
RULE = "a relative path begins at the folder of the curriculum's file"
ELSEWHERE = f"{RULE}, not at the working directory, where there is one"


def with_located_file(
    data: dict[str, Any], *, file: str, find: Find | None = None
) -> tuple[dict[str, Any], list[Diagnostic]]:
    """`data` of the curriculum `file`, with the place of the one file that its world names.

    A world reads such a file to check its other settings. What is not there stays as it is, for
    the world to say so, unless the working directory has it, which is a fault.
    """
    env = data.get("env")
    world = named_type(env)
    files = None if world is None else world.files
    if files is None or not files.single or not isinstance(env, Mapping):
        return data, []
    entry = env.get(files.key)
    if not isinstance(entry, str) or not files.is_own(entry):
        return data, []
    folder = Path(file).parent
    if (find is not None and files.form.is_kept_name(entry)) or _is_there(folder / entry):
        found = str(_source(entry, folder, find, files))
        return {**data, "env": {**env, files.key: found}}, []
    if isabs(entry) or not _is_there(Path(entry)):
        return data, []
    what = f"there is no file {_shown(normpath(folder / entry))}; {ELSEWHERE}"
    return data, [Diagnostic(("env", files.key), what)]


def with_own_files(
    config: CurriculumFile, *, origins: Origins, find: Find | None = None
) -> CurriculumFile:
    """`config` with the text of its own files in the place of their paths.

    Those that a run kept are asked from `find`, where it is given. Raises ConfigurationError with
    every fault, one line each.
    """
    files, entries = type_of(config.env).files, _entries(config)
    if files is None or not entries:
        return config
    folder = Path() if files.single else Path(origins.file).parent  # where it was located
    faults = [
        Diagnostic(("env", files.key, *(() if files.single else (place,))), what)
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
    kept = text if files.single else (text,)
    return replace(config, env=replace(env, **{files.key: kept}))


def refuse_undrawable(config: CurriculumFile, origins: Origins) -> None:
    """Raise ConfigurationError, a line for each, where a lesson draws what no file holds."""
    world, faults = type_of(config.env), []
    if not knows_spec(config.env):
        return
    for number, lesson in enumerate(config.lessons):
        levels = lesson_scenario(lesson, world.targets(config.learned_env)).difficulty
        for target, weights in levels.items():
            what = world.drawing_fault(config.env, target, weights)
            if what is not None:
                faults.append(Diagnostic(("lessons", number, "difficulty", target), what))
    if faults:
        raise ConfigurationError(*origins.lines(faults))


def own_files(config: CurriculumFile) -> dict[str, str]:
    """The text of its own files by the name under which it is kept; empty where it has none."""
    files = type_of(config.env).files
    if files is None:
        return {}
    return {files.form.kept_name(text): text for text in _entries(config) if "\n" in text}


def plain_settings(config: CurriculumFile) -> dict[str, Any]:
    """`config` as plain data, with names in the place of texts of own files.

    Without the password of a tracking address: what is written of it is kept and shown.
    """
    data = asdict(config)
    if config.tracking.uri is not None:
        data["tracking"]["uri"] = without_password(config.tracking.uri)
    files, entries = type_of(config.env).files, _entries(config)
    if files is not None and entries:
        named = tuple(files.form.kept_name(entry) if "\n" in entry else entry for entry in entries)
        data["env"][files.key] = named[0] if files.single else named
    return data


def _entries(config: CurriculumFile) -> tuple[str, ...]:
    """The files of a user's own, or the kept text, that the world's settings name."""
    files = type_of(config.env).files
    if files is None:
        return ()
    value = getattr(config.env, files.key)
    entries = (value,) if files.single else tuple(value)
    return tuple(entry for entry in entries if isinstance(entry, str) and files.is_own(entry))


def _refusal(entry: str, folder: Path, find: Find | None, files: KeptFiles) -> str | None:
    """What is wrong with the path `entry`, None where there is such a file or folder."""
    if "\n" in entry or "\0" in entry or (find is not None and files.form.is_kept_name(entry)):
        return None  # what is wrong with these is found where they are read
    try:
        if (folder / entry).exists():
            return _useless(folder / entry, files)
    except OSError as error:  # too long a name, a folder that may not be looked into
        return f"cannot be read: {error.strerror}: {_shown(entry)}"
    elsewhere = "" if isabs(entry) else f"; {ELSEWHERE if Path(entry).exists() else RULE}"
    return f"there is no file or folder {_shown(normpath(folder / entry))}{elsewhere}"


def _useless(path: Path, files: KeptFiles) -> str | None:
    """Why no preset can come from what is at `path`, None where one might."""
    if path.is_dir() and not files.single:
        return None if yaml_files(path) else "the folder holds no *.yaml or *.yml file"
    regular = path.is_file() and not is_of_the_kernel(path)
    return None if regular else "is not a regular file"


def _source(entry: str, folder: Path, find: Find | None, files: KeptFiles) -> Path | str:
    if "\n" in entry:
        return entry
    if find is not None and files.form.is_kept_name(entry):
        with suppress(KeyError):
            return find(entry)
    return folder / entry


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long a name, or one that holds a NUL
        return False


def _shown(path: str) -> str:
    return path if len(path) <= MAX_SHOWN else f"{path[:MAX_SHOWN]}..."
