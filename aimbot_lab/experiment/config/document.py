"""A curriculum's file: read, merged with the user's own files, checked.

Files that a world names, such as target blocks of one's own and maps, are found beside the
curriculum and kept with all that comes of it. In a curriculum that was read, the setting holds
their text, so that the files are read once; where it is written or compared, the name of that text
stands for it, which holds its hash: `presets-3f2a....yaml`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from os import PathLike, fspath
from os.path import isabs, normpath
from pathlib import Path
from typing import Any

from aimbot_lab.curriculum.settings import lesson_scenario
from aimbot_lab.experiment.config.checks import validate
from aimbot_lab.experiment.config.settings import CurriculumFile, with_reward_terms
from aimbot_lab.experiment.config.yaml_reader import (
    MAX_BYTES,
    MAX_NODES,
    MAX_OVERRIDE,
    Diagnostic,
    Interpolator,
    KeyPath,
    Origins,
    YamlDocument,
    count_values,
    read_mapping,
    read_text,
    shown_file,
    starts_with,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.files import is_of_the_kernel, is_there
from aimbot_lab.foundation.named_code import MayRun, NamedCode, is_allowed, never
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world_type import KeptFiles
from aimbot_lab.foundation.yaml_files import dump, yaml_files
from aimbot_lab.shipped.named_files import CURRICULUM, find_file
from aimbot_lab.tracking.data_folder import without_password
from aimbot_lab.training.checks import HYPER_PARAMETERS, action_remarks, plan_remarks
from aimbot_lab.worlds.registry import code_of, knows_spec, named_type, spec_of, type_of

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
    if (find is not None and files.form.is_kept_name(entry)) or is_there(folder / entry):
        found = str(_source(entry, folder, find, files))
        return {**data, "env": {**env, files.key: found}}, []
    if isabs(entry) or not is_there(Path(entry)):
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
    except ConfigurationError as error:
        return str(error)
    except OSError as error:  # too long a name, a folder that may not be looked into
        return f"cannot be read: {error.strerror}: {_shown(entry)}"
    elsewhere = "" if isabs(entry) else f"; {ELSEWHERE if Path(entry).exists() else RULE}"
    return f"there is no file or folder {_shown(normpath(folder / entry))}{elsewhere}"


def _useless(path: Path, files: KeptFiles) -> str | None:
    """Why no preset can come from what is at `path`, None where one might.

    Raises ConfigurationError for a folder without YAML files.
    """
    is_folder = path.is_dir() and not files.single and yaml_files(path)
    regular = path.is_file() and not is_of_the_kernel(path)
    return None if is_folder or regular else "is not a regular file"


def _source(entry: str, folder: Path, find: Find | None, files: KeptFiles) -> Path | str:
    if "\n" in entry:
        return entry
    if find is not None and files.form.is_kept_name(entry):
        with suppress(KeyError):
            return find(entry)
    return folder / entry


def _shown(path: str) -> str:
    return path if len(path) <= MAX_SHOWN else f"{path[:MAX_SHOWN]}..."


_DECIDE = ("train.algo", "train.actors", "env.world")  # keys on which defaults depend, of these:
_LAYERS: KeyPath = ("train", "network", "layers")
_BY_ALGORITHM: tuple[KeyPath, ...] = (
    ("env", "num_envs"),
    *(("train", key) for key in sorted({*HYPER_PARAMETERS, "aim_bins", "reward_scale"})),
    *(_LAYERS, ("train", "network", "activation"), ("train", "network", "scaling")),
    ("train", "options", "train_freq"),
)
_FORM = (
    "must be a mapping with name, and perhaps seed, env, lessons, forgetting, evaluation, "
    "self_play, environment_parameters, train, tracking"
)


@dataclass(frozen=True)
class LoadedCurriculum:
    """A curriculum that is fit to run, and the texts it came from."""

    config: CurriculumFile
    source_text: str  # as written
    resolved_text: str  # overrides and references worked in, every default spelled out
    path: Path
    left_open: tuple[KeyPath, ...] = ()  # of _BY_ALGORITHM, what neither text nor overrides name
    origins: Origins = field(default=Origins(""), compare=False, repr=False)  # of what was written

    @property
    def name(self) -> str:
        """What the training is called."""
        return self.config.name

    @property
    def unasked(self) -> tuple[NamedCode, ...]:
        """The code that would have to run to check what it names; none of a known world."""
        known = code_of(self.config.env) if knows_spec(self.config.env) else None
        return tuple(one for one in self.config.codes if one != known and not is_allowed(one))

    @property
    def notes(self) -> tuple[str, ...]:
        """What one should know of what is trained, as far as its world is known."""
        if not knows_spec(self.config.env):
            return ()
        train, env = self.config.train, self.config.env
        return (*action_remarks(train, spec_of(env)), *plan_remarks(train, env))

    @property
    def open_settings(self) -> dict[str, Any]:
        """Plain data without what the algorithm and the world decide where the file is silent."""
        data = plain_settings(self.config)
        for *way, last in self.left_open:
            place: Any = data
            for key in way:
                place = place[key]
            place.pop(last, None)
        return data

    @property
    def open_text(self) -> str:
        """The resolved text with the `open_settings` alone."""
        return dump(self.open_settings)

    @property
    def files(self) -> dict[str, str]:
        """The texts that `resolved_text` refers to, by the names of files beside it."""
        files = type_of(self.config.env).files
        if files is None:
            return {}
        return {files.form.kept_name(text): text for text in _entries(self.config) if "\n" in text}


def load_curriculum(
    path: str | PathLike[str],
    overrides: Sequence[str] = (),
    *,
    allowed_env: Collection[str] = (),
    find: Find | None = None,
    may_run: MayRun = never,
) -> LoadedCurriculum:
    """The curriculum in the file at `path` with each `KEY=VALUE` of `overrides` put in.

    A name means a file of one's own or a shipped one (`find_file`), `-` the standard input. The
    file may refer to the environment variables in `allowed_env`. Own blocks are read from its
    folder; those that a run kept from `find`, if given. Code that its world names runs where
    `may_run` says so; else `LoadedCurriculum.unasked` names it, and the file alone is checked.
    Raises ConfigurationError with every fault that was found, one line each:
    `file:line:column: key: what is wrong, what is allowed`, or `--set KEY=VALUE: key: ...`.
    """
    file = find_file(fspath(path), CURRICULUM)
    text = read_text(file)
    return parse_curriculum(
        text, shown_file(file), overrides, allowed_env=allowed_env, find=find, may_run=may_run
    )


def parse_curriculum(
    text: str,
    file: str,
    overrides: Sequence[str] = (),
    *,
    allowed_env: Collection[str] = (),
    find: Find | None = None,
    may_run: MayRun = never,
) -> LoadedCurriculum:
    """The curriculum that `text` says, as if it stood in `file`, which need not exist.

    Raises ConfigurationError as `load_curriculum` does.
    """
    document = read_mapping(text, file, form=_FORM)
    return _loaded(
        document, text, file, overrides, allowed_env=allowed_env, find=find, may_run=may_run
    )


def _loaded(
    document: YamlDocument,
    text: str,
    file: str,
    overrides: Sequence[str],
    *,
    allowed_env: Collection[str] = (),
    find: Find | None,
    may_run: MayRun,
) -> LoadedCurriculum:
    """The curriculum of a `document`, a mapping. Raises ConfigurationError."""
    composition = Interpolator(document.data, allowed_env)
    applied: list[tuple[KeyPath, str]] = []
    refused: list[str] = []
    for one in overrides:
        try:
            applied += [(path, one) for path in composition.override(one)]
        except ValueError as error:
            refused.append(one_line(f"--set {shortened(one, MAX_OVERRIDE)}: {error}"))
    composition.resolve()
    data, mislaid = with_located_file(composition.data, file=file, find=find)
    config, found = validate(data, may_run=may_run)
    found = [*mislaid, *with_reward_terms(found, data)]
    unusable = [*document.broken, *composition.unresolved]
    faults = [
        *document.faults,
        *composition.faults,
        *(one for one in found if not any(starts_with(one.path, place) for place in unusable)),
    ]
    origins = document.origins(file, applied)
    if faults or refused or config is None:
        raise ConfigurationError(*origins.lines(faults), *refused)
    left_open = tuple(path for path in _BY_ALGORITHM if not _has(data, path))
    config = config.resolved(own_layers=_LAYERS not in left_open)
    config = with_own_files(config, origins=origins, find=find)
    refuse_undrawable(config, origins)
    resolved = _resolved_text(config, file)
    return LoadedCurriculum(config, text, resolved, Path(file), left_open, origins)


def _has(data: Any, path: KeyPath) -> bool:
    """Whether `data` holds a value at `path`."""
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return False
        data = data[key]
    return True


def with_overrides(loaded: LoadedCurriculum, overrides: Sequence[str]) -> LoadedCurriculum:
    """`loaded` with each `KEY=VALUE` of `overrides` put in; no file is read again.

    Code that may run here may do so with other arguments; other code that `overrides` name may not.
    Raises ConfigurationError as `load_curriculum` does.
    """
    kept = loaded.files
    sources = {own.source for own in loaded.config.codes if is_allowed(own)}

    def may_run(code: NamedCode) -> bool:
        return code.source in sources

    decides = any(one.partition("=")[0].startswith(_DECIDE) for one in overrides)
    data = loaded.open_settings if decides else plain_settings(loaded.config)
    places = loaded.origins
    document = YamlDocument(_as_lists(data), dict(places.keys), dict(places.values))
    text = dump(data)  # which a run keeps as what it was made of
    file, find = str(loaded.path), kept.__getitem__
    return _loaded(document, text, file, overrides, find=find, may_run=may_run)


def _as_lists(data: Any) -> Any:
    """`data` with lists in the place of tuples, as they are read from a file."""
    if isinstance(data, dict):
        return {key: _as_lists(value) for key, value in data.items()}
    return [*map(_as_lists, data)] if isinstance(data, list | tuple) else data


def with_config(curriculum: LoadedCurriculum, config: CurriculumFile) -> LoadedCurriculum:
    """`curriculum` with `config` in the place of its own; the text as written stays."""
    resolved = _resolved_text(config, str(curriculum.path))
    return replace(curriculum, config=config, resolved_text=resolved)


def _resolved_text(config: CurriculumFile, file: str) -> str:
    """The file that `config` fills, small enough to be read again."""
    data = plain_settings(config)
    text = dump(data)
    if count_values(data) > MAX_NODES or len(text.encode()) > MAX_BYTES:
        what = f"is too large: with all defaults, at most {MAX_NODES} values and {MAX_BYTES} bytes"
        raise ConfigurationError(one_line(f"{file}: {what}"))
    return text
