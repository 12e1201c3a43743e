"""YAML with positions: read, its overrides and references worked in, and what is wrong where.

OmegaConf merges overrides and resolves references (`${train.n_steps}`). Only references to other
keys are allowed, and to environment variables that the user names: OmegaConf's resolvers would let
a file read the machine, so that it gives another training on another one, and what it reads ends up
in every run's record. References are worked out one by one, each from values that are already
known, so that neither a circle nor a chain that doubles at every link can stall the reader.
"""

import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import (
    InterpolationKeyError,
    InterpolationToMissingValueError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from aimbot_lab.foundation import yaml_files as dialect
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import MAX_LINE, is_seen, one_line, shortened
from aimbot_lab.foundation.yaml_files import (
    Position,
    YamlError,
    compose,
    decoded,
    place_of,
    scalar,
)
from aimbot_lab.shipped.named_files import STDIN
from aimbot_lab.worlds.registry import default_type

KeyPath = tuple[str | int, ...]

MAX_KEY = 80  # characters of a key that a fault repeats
MAX_OVERRIDE = 200  # characters of a `--set` that a fault repeats


class Diagnostic(NamedTuple):
    """What is wrong at a key; `position` is given where the key's own place is not the one."""

    path: KeyPath
    what: str
    position: Position | None = None
    about_key: bool = False  # the key itself is wrong, not its value


@dataclass(frozen=True)
class Origins:
    """Where each key's value came from: a place in the file or a `--set`."""

    file: str
    keys: Mapping[KeyPath, Position] = field(default_factory=dict)
    values: Mapping[KeyPath, Position] = field(default_factory=dict)
    overrides: Sequence[tuple[KeyPath, str]] = ()  # path and KEY=VALUE, in the order of application

    def lines(self, faults: Sequence[Diagnostic]) -> list[str]:
        """One line for each of `faults`, in the order of the file, overrides last."""
        placed = sorted({self._placed(fault) for fault in faults})
        return [shortened(one_line(text), MAX_LINE) for _, text in placed]

    def _placed(self, fault: Diagnostic) -> tuple[tuple[int, ...], str]:
        text = f"{shown_path(fault.path)}: {fault.what}" if fault.path else fault.what
        number = None if fault.position else self._override(fault.path)
        if number is not None:
            override = shortened(self.overrides[number][1], MAX_OVERRIDE)
            return (1, number, 0), f"--set {override}: {text}"
        position = fault.position or (self.keys.get(fault.path) if fault.about_key else None)
        if position is None:
            ancestors = (fault.path[:length] for length in range(len(fault.path), -1, -1))
            known = (self.values[path] for path in ancestors if path in self.values)
            position = next(known, Position(1, 1))
        return (0, *position), f"{self.file}:{position}: {text}"

    def _override(self, path: KeyPath) -> int | None:
        numbers = range(len(self.overrides) - 1, -1, -1)
        above = (i for i in numbers if starts_with(path, self.overrides[i][0]))
        below = (i for i in numbers if starts_with(self.overrides[i][0], path))
        return next(above, next(below, None) if path else None)


def shown_path(path: KeyPath) -> str:
    """The dotted form of `path`, as `--set` takes it; very long keys are shortened."""
    return ".".join(shortened(str(key), MAX_KEY) for key in path)


def starts_with(path: KeyPath, beginning: Sequence[str | int]) -> bool:
    """Whether `path` is `beginning` or lies under it."""
    return path[: len(beginning)] == tuple(beginning)


def is_parameters(path: KeyPath) -> bool:
    """Whether `path` leads to the environment parameters of a lesson, or of all lessons."""
    return path == ("environment_parameters",) or (
        len(path) == 3 and path[0] == "lessons" and path[2] == "parameters"
    )


def shown_value(value: object) -> str:
    """A short form of `value` for a message, in the words of YAML."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]} ..."


MAX_BYTES = 64 * 1024  # of a file
MAX_NODES = 5_000

Pair = tuple[str, yaml.Node, yaml.Node]


@dataclass
class YamlDocument:
    """A text as plain data; `data` holds None at each of the `broken` paths, whose value is bad."""

    data: Any = None
    keys: dict[KeyPath, Position] = field(default_factory=dict)
    values: dict[KeyPath, Position] = field(default_factory=dict)
    faults: list[Diagnostic] = field(default_factory=list)
    broken: list[KeyPath] = field(default_factory=list)

    def origins(self, file: str, overrides: Sequence[tuple[KeyPath, str]] = ()) -> Origins:
        """Where each value came from, as `file` says and after `overrides`."""
        return Origins(file, self.keys, self.values, overrides)


def read_text(file: str) -> str:
    """What the small UTF-8 file says; `-` is standard input.

    Raises ConfigurationError with one line.
    """
    try:
        if file == STDIN:
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(file, "rb") as stream:
                raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(one_line(f"{file}: can't be read: {reason}")) from error
    file = shown_file(file)
    if len(raw) > MAX_BYTES:
        raise ConfigurationError(one_line(f"{file}: is larger than {MAX_BYTES} bytes"))
    try:
        return decoded(raw)
    except YamlError as error:
        fault = Diagnostic((), error.what, error.position)
        raise ConfigurationError(*Origins(file).lines([fault])) from error


def shown_file(file: str) -> str:
    """The name of `file` in a fault."""
    return "<stdin>" if file == STDIN else file


def read_yaml(text: str) -> YamlDocument:
    """`text` as plain data; `data` is None for an empty or invalid text."""
    document = YamlDocument()
    try:
        node = compose(text)
        if node is not None:
            document.data = _Reader(document).value(node, ())
    except YamlError as error:
        document.data = None
        document.faults = [Diagnostic((), error.what, error.position)]
    return document


def read_mapping(text: str, file: str, *, form: str) -> YamlDocument:
    """As `read_yaml`; raises ConfigurationError, naming the `form`, where it is not a mapping."""
    document = read_yaml(text)
    if isinstance(document.data, dict):
        return document
    got = f"got {shown_value(document.data)}" if document.values else "the file is empty"
    faults = document.faults or [Diagnostic((), f"{form} ({got})")]
    raise ConfigurationError(*document.origins(file).lines(faults))


def count_values(data: Any) -> int:
    """Mappings, lists and scalars in `data`, itself included."""
    several = isinstance(data, list | tuple)
    items = data.values() if isinstance(data, dict) else data if several else ()
    return 1 + sum(map(count_values, items))


class _Reader:
    """Turns nodes into plain data; aliases are followed, so the nodes are counted."""

    def __init__(self, document: YamlDocument) -> None:
        self._document = document
        self._nodes = 0

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self._count(node, path)
        self._document.values.setdefault(path, place_of(node))
        if isinstance(node, yaml.MappingNode) and node.tag == dialect.MAP:
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == dialect.SEQ:
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self._broken(node, path, f"must not carry the tag {node.tag}")
        return None

    def _count(self, node: yaml.Node, path: KeyPath) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise YamlError(f"holds more than {MAX_NODES} values", place_of(node))
        if len(path) > dialect.MAX_LEVELS:
            what = f"is nested deeper than {dialect.MAX_LEVELS} levels, or contains itself"
            raise YamlError(what, place_of(node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, key_node, value_node in self._pairs(node, path):
            here = (*path, key)
            self._document.keys[here] = place_of(key_node)
            if isinstance(value_node, yaml.CollectionNode) and not value_node.flow_style:
                self._document.values[here] = place_of(key_node)
            data[key] = self.value(value_node, here)
        return data

    def _pairs(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[Pair]:
        """Keys and values of `node`, then those it merges (`<<`) and does not hold itself."""
        seen: dict[str, Position] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in seen:
                self._diagnostic(
                    key_node, (*path, key), f"is given twice, first in line {seen[key].line}"
                )
                continue
            seen[key] = place_of(key_node)
            yield key, key_node, value_node
        for merged in self._merged(node, path):
            for pair in self._pairs(merged, (*path, "<<")):
                self._count(pair[1], path)
                if pair[0] not in seen:
                    seen[pair[0]] = place_of(pair[1])
                    yield pair

    def _key(self, node: yaml.Node, path: KeyPath) -> str | None:
        if node.tag == dialect.MERGE:
            return None
        if isinstance(node, yaml.ScalarNode) and node.tag == dialect.STR and is_seen(node.value):
            return str(node.value)
        shown = node.value if isinstance(node, yaml.ScalarNode) else "a list or mapping"
        self._diagnostic(node, path, f"a key must be visible text (got {shown})")
        return None

    def _merged(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[yaml.MappingNode]:
        for key_node, value_node in node.value:
            if key_node.tag != dialect.MERGE:
                continue
            several = isinstance(value_node, yaml.SequenceNode)
            for source in value_node.value if several else [value_node]:
                self._count(source, path)
                if isinstance(source, yaml.MappingNode):
                    yield source
                else:
                    self._diagnostic(source, path, "<< must merge a mapping or a list of mappings")

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        try:
            value = scalar(node)
        except ValueError as error:
            self._broken(node, path, str(error))
            return None
        if not isinstance(value, str) or is_seen(value):
            return value
        self._broken(node, path, f"must be one line of visible text (got {shown_value(value)})")
        return None

    def _broken(self, node: yaml.Node, path: KeyPath, what: str) -> None:
        self._document.broken.append(path)
        self._diagnostic(node, path, what)

    def _diagnostic(self, node: yaml.Node, path: KeyPath, what: str) -> None:
        """Note a fault once, however many aliases lead to its place."""
        place = place_of(node)
        if all(fault.position != place for fault in self._document.faults):
            self._document.faults.append(Diagnostic(path, what, place))


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
            for known in [known for known in self._references if starts_with(known, path)]:
                del self._references[known]
            self.faults = [fault for fault in self.faults if not starts_with(fault.path, path)]
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

    def _diagnostic(self, path: KeyPath, what: str) -> None:
        del self._references[path]
        self.faults.append(Diagnostic(path, what))

    def _resolve(self, path: KeyPath, text: str) -> bool:
        """Whether the reference in `text` is done with: resolved, or found to be wrong."""
        section: Any = self._config
        *sections, key = path
        for one in sections:
            section = section[one]
        try:
            section[key] = text
            value = section[key]
            if OmegaConf.is_config(value):
                value = OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
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

    def _fits(self, value: Any) -> bool:
        if isinstance(value, str):
            return len(value) <= MAX_CHARACTERS and not _is_special(value)
        self._values += count_values(value)
        return self._values <= MAX_VALUES


def _is_special(text: str) -> bool:
    return "${" in text or text == _UNKNOWN


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
