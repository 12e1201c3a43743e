"""Curriculum files: read, overridden, resolved and checked."""

import sys
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from aimbot_lab.experiment.config.diagnostics import MAX_OVERRIDE, Diagnostic, Origins
from aimbot_lab.experiment.config.interpolation import Interpolator
from aimbot_lab.experiment.config.key_path import KeyPath, one_line, shown_value, starts_with
from aimbot_lab.experiment.config.overrides import parse_override
from aimbot_lab.experiment.config.own_files import (
    Find,
    own_files,
    plain_settings,
    refuse_undrawable,
    with_located_file,
    with_own_files,
)
from aimbot_lab.experiment.config.parameter_checks import with_reward_terms
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.config.validation import MayRun, never, validate
from aimbot_lab.experiment.config.yaml_reader import (
    MAX_NODES,
    YamlDocument,
    count_values,
    read_yaml,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import NamedCode, is_allowed
from aimbot_lab.foundation.shown_text import shortened
from aimbot_lab.foundation.yaml_nodes import Position, dump
from aimbot_lab.shipped.named_files import CURRICULUM, STDIN, find_file
from aimbot_lab.training.algorithms.options import action_remarks
from aimbot_lab.worlds.registry import code_of, knows_spec, spec_of

MAX_BYTES = 64 * 1024
_DECIDE = ("train.algo", "train.actors", "env.world")  # keys on which defaults depend, of these:
_BY_ALGORITHM: tuple[KeyPath, ...] = (
    ("train", "learning_rate"),
    ("train", "aim_bins"),
    ("train", "reward_scale"),
    ("train", "network", "scaling"),
)
_FORM = (
    "must be a mapping with name and lessons, and perhaps seed, env, forgetting, evaluation, "
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

    @property
    def name(self) -> str:
        """What the training is called."""
        return self.config.name

    @property
    def unasked(self) -> NamedCode | None:
        """The code that would have to run to know the shape of its world; None: it is known."""
        return None if knows_spec(self.config.env) else code_of(self.config.env)

    @property
    def notes(self) -> tuple[str, ...]:
        """What one should know of what is trained, as far as its world is known."""
        if not knows_spec(self.config.env):
            return ()
        return tuple(action_remarks(self.config.train, spec_of(self.config.env)))

    @property
    def open_text(self) -> str:
        """The resolved text without what the algorithm and the world decide where nobody does."""
        data = plain_settings(self.config)
        for *way, last in self.left_open:
            place: Any = data
            for key in way:
                place = place[key]
            place.pop(last, None)
        return dump(data)

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
    document = read_yaml(text)
    refuse_unless_mapping(document, file, form=_FORM)
    composition = Interpolator(document.data, allowed_env)
    applied, refused = _apply(overrides, composition)
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
    origins = Origins(file, document.keys, document.values, applied)
    if faults or refused or config is None:
        raise ConfigurationError(*origins.lines(faults), *refused)
    config = with_own_files(config.resolved(), origins=origins, find=find)
    refuse_undrawable(config, origins)
    left_open = tuple(path for path in _BY_ALGORITHM if not _has(data, path))
    return LoadedCurriculum(config, text, _resolved_text(config, file), Path(file), left_open)


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
    own = code_of(loaded.config.env)

    def may_run(code: NamedCode) -> bool:
        return own is not None and is_allowed(own) and code.source == own.source

    decides = any(one.partition("=")[0].startswith(_DECIDE) for one in overrides)
    text = loaded.open_text if decides else loaded.resolved_text
    return parse_curriculum(
        text, str(loaded.path), overrides, find=kept.__getitem__, may_run=may_run
    )


def check_files(
    paths: Iterable[str | PathLike[str]],
    overrides: Sequence[str] = (),
    *,
    allowed_env: Collection[str] = (),
) -> list[str]:
    """The faults of all these files, one line each; empty where all are fit to run."""
    faults: list[str] = []
    for path in paths:
        try:
            load_curriculum(path, overrides, allowed_env=allowed_env)
        except ConfigurationError as error:
            faults += error.faults
    return faults


def shown_file(file: str) -> str:
    """The name of `file` in a fault."""
    return "<stdin>" if file == STDIN else file


def read_text(file: str) -> str:
    """What the small UTF-8 file says; `-` is standard input.

    Raises ConfigurationError with one line.
    """
    try:
        raw = _read_bytes(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(one_line(f"{file}: can't be read: {reason}")) from error
    file = shown_file(file)
    if len(raw) > MAX_BYTES:
        raise ConfigurationError(one_line(f"{file}: is larger than {MAX_BYTES} bytes"))
    raw = raw.removeprefix(BOM_UTF8)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line_start = raw.rfind(b"\n", 0, error.start) + 1
        column = len(raw[line_start : error.start].decode("utf-8")) + 1
        mark = Position(raw.count(b"\n", 0, error.start) + 1, column)
        fault = Diagnostic((), f"not valid UTF-8: byte 0x{raw[error.start]:02x}", mark)
        raise ConfigurationError(*Origins(file).lines([fault])) from error


def with_config(curriculum: LoadedCurriculum, config: CurriculumFile) -> LoadedCurriculum:
    """`curriculum` with `config` in the place of its own; the text as written stays."""
    resolved = _resolved_text(config, str(curriculum.path))
    return replace(curriculum, config=config, resolved_text=resolved)


def _read_bytes(file: str) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with open(file, "rb") as stream:
        return stream.read(MAX_BYTES + 1)


def _resolved_text(config: CurriculumFile, file: str) -> str:
    """The file that `config` fills, small enough to be read again."""
    data = plain_settings(config)
    text = dump(data)
    if count_values(data) > MAX_NODES or len(text.encode()) > MAX_BYTES:
        what = f"is too large: with all defaults, at most {MAX_NODES} values and {MAX_BYTES} bytes"
        raise ConfigurationError(one_line(f"{file}: {what}"))
    return text


def refuse_unless_mapping(document: YamlDocument, file: str, *, form: str) -> None:
    """Raise ConfigurationError, which names the `form`, unless `document` is a mapping of keys."""
    if isinstance(document.data, dict):
        return
    got = f"got {shown_value(document.data)}" if document.values else "the file is empty"
    faults = document.faults or [Diagnostic((), f"{form} ({got})")]
    raise ConfigurationError(*Origins(file, document.keys, document.values).lines(faults))


def _apply(
    overrides: Sequence[str], composition: Interpolator
) -> tuple[list[tuple[KeyPath, str]], list[str]]:
    """The paths that were set, each with its override, and a line for each refused override."""
    applied: list[tuple[KeyPath, str]] = []
    refused: list[str] = []
    for text in overrides:
        try:
            override = parse_override(text, composition.data)
            composition.override(override)
        except ValueError as error:
            refused.append(one_line(f"--set {shortened(text, MAX_OVERRIDE)}: {error}"))
        else:
            applied += [(path, text) for path, _ in override.values]
    return applied, refused
