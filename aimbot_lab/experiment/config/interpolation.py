"""Overrides and references (`${train.n_steps}`) worked into the data of a curriculum file.

OmegaConf does both. Only references to other keys are allowed, and to environment variables that
the user names: OmegaConf's resolvers would let a file read the machine, so that it gives another
training on another one, and what it reads ends up in every run's record. References are worked out
one by one, each from values that are already known, so that neither a circle nor a chain that
doubles at every link can stall the reader.
"""

import os
import re
from collections.abc import Collection, Iterator
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import (
    InterpolationKeyError,
    InterpolationToMissingValueError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from aimbot_lab.experiment.config.yaml_reader import (
    Diagnostic,
    KeyPath,
    count_values,
    is_parameters,
    read_yaml,
    shown_path,
    shown_value,
)
from aimbot_lab.worlds.registry import default_type

MAX_REFERENCES = 100
MAX_CHARACTERS = 10_000
MAX_VALUES = 2_000
ONE_VALUE = frozenset({"sampler_type", "schedule"})
FORM = "must be KEY=VALUE with a KEY such as train.total_steps or lessons.0.name"

_UNKNOWN = "???"
_REFUSALS = (OmegaConfBaseException, ValueError, TypeError, LookupError, AttributeError)
_REFERENCE = re.compile(r"(?<!\\)\$\{[\w.\[\]]+\}")
_VARIABLE = re.compile(r"(?<!\\)\$\{oc\.env:(?P<name>\w+)(?:,(?P<default>[^${}]*))?\}")


class Interpolator:
    """The data of a file, to be overridden and then resolved.

    `faults` says what was wrong; there the data read `???`.
    """

    def __init__(self, data: dict[str, Any], allowed_env: Collection[str] = ()) -> None:
        self.faults: list[Diagnostic] = []
        self._allowed_env = allowed_env
        self._references: dict[KeyPath, str] = {}
        self._values = 0
        self._config = OmegaConf.create(self._aside(data, ()))

    @property
    def unresolved(self) -> list[KeyPath]:
        """Where the data read `???` because no value could be put there."""
        return [fault.path for fault in self.faults] + list(self._references)

    @property
    def data(self) -> Any:
        """The data as they stand; what is not resolved reads `???`."""
        return OmegaConf.to_container(self._config)

    def override(self, text: str) -> list[KeyPath]:
        """Set what `text`, KEY=VALUE, gives; what lay under those keys before is gone.

        A mapping gives several values, but a sampler or a schedule is one: the keys of two kinds
        do not mix. Lists take numbers as keys. Returns the paths that were set. Raises ValueError
        with what is wrong.
        """
        key, separator, value = text.partition("=")
        parts = re.sub(r"\[(\d+)\]", r".\1", key.strip()).split(".")
        if not separator or not all(re.fullmatch(r"[\w-]+", part) for part in parts):
            raise ValueError(FORM)
        document = read_yaml(value)
        if document.faults:
            raise ValueError(f"the value: {document.faults[0].what}")
        data = self.data
        values = [(_path(leaf, data), value) for leaf, value in _leaves(parts, document.data)]
        for path, value in values:
            self._forget(path)
            try:
                self._set(path, self._aside(value, path))
            except _REFUSALS as error:
                raise ValueError(_first_line(error)) from error
        return [path for path, _ in values]

    def _set(self, path: KeyPath, value: Any) -> None:
        # Not with OmegaConf.update: an environment parameter such as rewards.win is one key.
        section: Any = self._config
        for key in path[:-1]:
            is_there = isinstance(key, int) or key in list(section)
            if not is_there or not OmegaConf.is_config(section[key]):
                section[key] = {}
            section = section[key]
        section[path[-1]] = value

    def resolve(self) -> None:
        """Put values in the place of all references."""
        for path in list(self._references)[MAX_REFERENCES:]:
            self._diagnostic(path, f"must not be one of more than {MAX_REFERENCES} references")
        done = [True]
        while any(done):
            done = [self._resolve(path, text) for path, text in list(self._references.items())]
        if not self.faults:
            for path in self._references:
                self.faults.append(Diagnostic(path, "must not refer to itself through other keys"))

    def _aside(self, value: Any, path: KeyPath) -> Any:
        """`value` with every text that holds a reference noted and replaced by `???`."""
        if isinstance(value, dict):
            return {key: self._aside(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._aside(inner, (*path, index)) for index, inner in enumerate(value)]
        try:
            if isinstance(value, str):
                value = _with_variables(value, self._allowed_env)
        except ValueError as error:
            self.faults.append(Diagnostic(path, str(error)))
            return _UNKNOWN
        if not isinstance(value, str) or not _is_special(value):
            return value
        self._references[path] = value
        if value == _UNKNOWN:
            self._diagnostic(path, f"must be given a value (got {_UNKNOWN})")
        elif "${" in _REFERENCE.sub("", value):
            rule = "a reference is ${KEY} with a KEY such as train.n_steps"
            self._diagnostic(path, f"must not hold {shown_value(value)}; {rule}")
        return _UNKNOWN

    def _forget(self, path: KeyPath) -> None:
        for known in [known for known in self._references if known[: len(path)] == path]:
            del self._references[known]
        self.faults = [fault for fault in self.faults if fault.path[: len(path)] != path]

    def _diagnostic(self, path: KeyPath, what: str) -> None:
        del self._references[path]
        self.faults.append(Diagnostic(path, what))

    def _resolve(self, path: KeyPath, text: str) -> bool:
        """Whether the reference in `text` is done with: resolved, or found to be wrong."""
        section, key = self._section(path), path[-1]
        try:
            section[key] = text
            value = _plain(section[key])
        except (InterpolationToMissingValueError, MissingMandatoryValue):
            section[key] = _UNKNOWN
            return False
        except _REFUSALS as error:
            section[key] = _UNKNOWN
            self._diagnostic(path, f"can't be resolved: {_first_line(error)}")
            return True
        if self._fits(value):
            section[key] = value
            del self._references[path]
        else:
            section[key] = _UNKNOWN
            self._diagnostic(path, "can't be resolved: its value is too large")
        return True

    def _section(self, path: KeyPath) -> Any:
        section: Any = self._config
        for key in path[:-1]:
            section = section[key]
        return section

    def _fits(self, value: Any) -> bool:
        if isinstance(value, str):
            return len(value) <= MAX_CHARACTERS and not _is_special(value)
        self._values += count_values(value)
        return self._values <= MAX_VALUES


def _is_special(text: str) -> bool:
    return "${" in text or text == _UNKNOWN


def _plain(value: Any) -> Any:
    if OmegaConf.is_config(value):
        return OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
    return value


def _first_line(error: Exception) -> str:
    line = str(error).split("\n", maxsplit=1)[0]
    if isinstance(error, InterpolationKeyError):
        return f"{line}; only keys that the file sets can be referred to"
    return line


def _leaves(parts: list[str], value: Any) -> Iterator[tuple[list[str], Any]]:
    if isinstance(value, dict) and value and not ONE_VALUE & value.keys():
        for key, inner in value.items():
            yield from _leaves([*parts, key], inner)
    else:
        yield parts, value


def _path(parts: list[str], data: Any) -> KeyPath:
    """The path that `parts` of a dotted key mean in `data`; ValueError: no such place of a list."""
    known = default_type().parameters(None) or {}
    path: KeyPath = ()
    while parts:
        length = 1
        if is_parameters(path):  # names of parameters hold dots: rewards.win
            lengths = range(1, len(parts) + 1)
            length = next((end for end in lengths if ".".join(parts[:end]) in known), len(parts))
        part, parts = ".".join(parts[:length]), parts[length:]
        key: str | int = part
        if isinstance(data, list):
            if not re.fullmatch("[0-9]{1,6}", part) or int(part) >= len(data):
                within = f"{shown_path(path)} is a list of {len(data)}"
                raise ValueError(f"{within}, so {part} must be a number below {len(data)}")
            key = int(part)
            data = data[key]
        else:
            data = data.get(part) if isinstance(data, dict) else None
        path = (*path, key)
    return path


def _with_variables(text: str, allowed: Collection[str]) -> Any:
    """`text` with the values of the environment variables that it refers to.

    A text that is one such reference and no more becomes what its value says in YAML, for example
    a number. Raises ValueError for a variable that is not allowed or not set.
    """

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in allowed:
            raise ValueError(f"must not read the environment without --allow-env {name}")
        found = os.environ.get(name, match["default"])
        if found is None:
            raise ValueError(f"refers to an environment variable that is not set: {name}")
        if "${" in found:
            raise ValueError(f"refers to an environment variable that holds a reference: {name}")
        return found

    plain = _VARIABLE.sub(value, text)
    if not _VARIABLE.fullmatch(text):
        return plain
    document = read_yaml(plain)
    return plain if document.faults or isinstance(document.data, dict | list) else document.data
