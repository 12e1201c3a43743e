"""Curriculum files: read, overridden, resolved and checked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from aimbot_lab.experiment.config.checks import validate
from aimbot_lab.experiment.config.diagnostics import MAX_OVERRIDE, KeyPath, Origins, starts_with
from aimbot_lab.experiment.config.interpolation import Interpolator
from aimbot_lab.experiment.config.own_files import (
    Find,
    own_files,
    plain_settings,
    refuse_undrawable,
    with_located_file,
    with_own_files,
)
from aimbot_lab.experiment.config.parameters import with_reward_terms
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.config.yaml_reader import (
    MAX_BYTES,
    MAX_NODES,
    YamlDocument,
    count_values,
    read_mapping,
    read_text,
    shown_file,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import MayRun, NamedCode, is_allowed, never
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.yaml_files import dump
from aimbot_lab.shipped.named_files import CURRICULUM, find_file
from aimbot_lab.training.checks import action_remarks
from aimbot_lab.worlds.registry import code_of, knows_spec, spec_of

_DECIDE = ("train.algo", "train.actors", "env.world")  # keys on which defaults depend, of these:
_BY_ALGORITHM: tuple[KeyPath, ...] = (
    ("train", "learning_rate"),
    ("train", "aim_bins"),
    ("train", "reward_scale"),
    ("train", "network", "scaling"),
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
        return tuple(action_remarks(self.config.train, spec_of(self.config.env)))

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
        return own_files(self.config)


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
    config = with_own_files(config.resolved(), origins=origins, find=find)
    refuse_undrawable(config, origins)
    left_open = tuple(path for path in _BY_ALGORITHM if not _has(data, path))
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
