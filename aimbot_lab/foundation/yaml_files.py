"""YAML within limits: text as nodes with positions, and kinds of files that are read by them.

Curricula, sweeps, trainer files, target blocks, scenes, layouts and maps are read here. Scalars
follow YAML 1.2, as editors do: only true and false are yes or no, so `no` is a text; `1e-4` is a
number, `010` and `12:30` are not. Underscores in numbers are allowed.
"""

import hashlib
import math
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.files import read_bounded
from aimbot_lab.foundation.settings import MAX_DIGITS
from aimbot_lab.foundation.shown_text import nearest_name

MAX_LEVELS = 40  # of lists and mappings in each other, unless a kind of file has fewer

PREFIX = "tag:yaml.org,2002:"
STR, INT, FLOAT, BOOL, NULL = (PREFIX + kind for kind in ("str", "int", "float", "bool", "null"))
MAP, SEQ, MERGE = (PREFIX + kind for kind in ("map", "seq", "merge"))
_FLOAT_TEXT = r"""[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
    |\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))
    |\.(?:nan|NaN|NAN)"""
_SCALARS = (
    (BOOL, "true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    (NULL, "~|null|Null|NULL|", [*"~nN", ""]),
    (INT, "[-+]?(?:0|[1-9][0-9_]*)", [*"-+0123456789"]),
    (FLOAT, _FLOAT_TEXT, [*"-+0123456789."]),
    (MERGE, "<<", ["<"]),
)
_BOOLS = {"true": True, "false": False}
_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Position(NamedTuple):
    """A place in a text, both counted from 1; as text `line:column`."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class YamlError(Exception):
    """A text that is not a YAML document within limits: what is wrong, and where."""

    def __init__(self, what: str, position: Position) -> None:
        super().__init__(what)
        self.what = what
        self.position = position


class _Loader(yaml.SafeLoader):
    """Composes nodes; refuses deep nesting at once, before Python's own stack gives way.

    PyYAML alone takes a second per 1,000 levels, and libyaml's parser crashes.
    """

    def __init__(self, text: str, max_levels: int) -> None:
        super().__init__(text)
        self._levels_left = self._max_levels = max_levels

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node. Raises YamlError where it lies too deep."""
        if self._levels_left == 0:
            event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
            what = f"is nested deeper than {self._max_levels} levels"
            raise YamlError(what, position_of(event.start_mark))
        self._levels_left -= 1
        node = super().compose_node(parent, index)
        self._levels_left += 1
        return node


class _Dumper(yaml.SafeDumper):
    """Quotes whatever this dialect or YAML 1.1 would not take for text."""


_Loader.yaml_implicit_resolvers = {}  # without those of YAML 1.1
for _tag, _pattern, _first in _SCALARS:
    _expression = re.compile(rf"^(?:{_pattern})$", re.VERBOSE)
    _Loader.add_implicit_resolver(_tag, _expression, _first)
    _Dumper.add_implicit_resolver(_tag, _expression, _first)


def compose(
    text: str, *, max_levels: int = MAX_LEVELS, is_shipped: bool = False
) -> yaml.Node | None:
    """The document in `text` as nodes, None where it is empty. Raises YamlError.

    A text that `is_shipped` with this package is read fast, by libyaml, which crashes on hostile
    ones. Its nodes have their places and values, but tags of YAML 1.1.
    """
    if is_shipped:
        with suppress(yaml.YAMLError):  # which is reported below
            root: yaml.Node | None = yaml.compose(text, Loader=_FAST_LOADER)
            return root
    bad = _Loader.NON_PRINTABLE.search(text)
    if bad:
        what = f"not valid YAML: character U+{ord(bad[0]):04X}"
        raise YamlError(what, position_after(text[: bad.start()]))
    loader = _Loader(text, max_levels)
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or loader.get_mark()
        raise YamlError(f"not valid YAML: {_reason(error)}", position_of(mark)) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        what = "not valid YAML: a number or an escape is too large"
        raise YamlError(what, position_of(loader.get_mark())) from error
    finally:
        loader.dispose()


def decoded(data: bytes) -> str:
    """`data` as text, without a byte order mark. Raises YamlError where it is not UTF-8."""
    try:
        return data.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")
        what = f"not valid UTF-8: byte 0x{error.object[error.start]:02x}; save the file as UTF-8"
        raise YamlError(what, position_after(before)) from error


def scalar(node: ScalarNode) -> str | bool | int | float | None:
    """The text, number or truth value at `node`; None where it says nothing.

    Raises ValueError with what it must be, for a broken number and other tags.
    """
    text: str = node.value
    if node.tag == STR:
        return text
    if node.tag == NULL:
        return None
    if node.tag == BOOL and text.lower() in _BOOLS:
        return _BOOLS[text.lower()]
    if node.tag not in (INT, FLOAT):
        raise ValueError(f"must not carry the tag {node.tag}")
    digits = text.replace("_", "").lower()
    with suppress(ValueError):
        if node.tag == FLOAT:
            return float(digits.replace(".inf", "inf").replace(".nan", "nan"))
        if len(digits.lstrip("+-")) <= MAX_DIGITS:
            return int(digits)
    raise ValueError(f"must be a number of at most {MAX_DIGITS} digits (got {shown(node)})")


def dump(data: object) -> str:
    """`data` as YAML text that `compose` reads back to the same."""
    return yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=None,
    )


def place_of(node: yaml.Node) -> Position:
    """Where `node` begins."""
    return position_of(node.start_mark)


def position_of(mark: Any) -> Position:
    """The position of PyYAML's `mark`; of None the beginning of the text."""
    return Position(1, 1) if mark is None else Position(mark.line + 1, mark.column + 1)


def position_after(text: str) -> Position:
    """The position of what follows `text`, the beginning of a file."""
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))


def _reason(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "unknown problem"
    if problem.startswith("found character '\\t'"):
        problem = "found a tab; indent with spaces"
    return f"{error.context}, {problem}" if error.context else problem


START = Position(1, 1)
MAX_FILE_LEVELS = 20  # of lists and mappings in each other; no kind of file has more than seven
MAX_NAME_LENGTH = 60
MAX_SHOWN = 40  # characters of a wrong value that a fault repeats
WHOLE = "the file"


class FileText(NamedTuple):
    """What a file holds as text, and the name by which faults call it."""

    name: Path
    text: str


Source = Path | FileText


@dataclass(frozen=True)
class FileFormat:
    """A kind of file, and how a run keeps what a user's own files hold."""

    noun: str  # what such a file holds: "preset"
    kept: str  # how the names of kept texts begin
    head: str  # how a kept text begins, before the hash of all lines below
    max_bytes: int  # of a file
    own: str = "file"  # what a fault calls a user's own one

    def source(self, entry: str | Path) -> Source:
        """What settings name: text where it has several lines, a path otherwise."""
        if isinstance(entry, str) and "\n" in entry:
            return FileText(Path(self.kept_name(entry)), entry)
        return Path(entry)

    def sources(self, entries: Iterable[Path | str]) -> tuple[Source, ...]:
        """The files and texts that `entries` name, each once; folders as their *.yaml and *.yml.

        A folder's files come in the order of their names. Raises ConfigurationError for a folder
        that holds none, and a name that no file can have.
        """
        found: dict[Source, None] = {}
        faults: list[str] = []
        for source in map(self.source, entries):
            if isinstance(source, FileText):
                found[source] = None
            elif "\0" in str(source):
                faults.append(f"{str(source)!a}: a file's name cannot hold a NUL")
            elif not source.is_dir():
                found[source] = None
            else:
                try:
                    found |= dict.fromkeys(yaml_files(source))
                except ConfigurationError as error:
                    faults += error.faults
        if faults:
            raise ConfigurationError(*faults)
        return tuple(found)

    def text(self, source: Source) -> str:
        """The text of `source`.

        Raises OSError, YamlError where it is not UTF-8, and ValueError for a kept file that is not
        what its name or its first line says.
        """
        if isinstance(source, FileText):
            text = source.text
        else:
            text = decoded(read_bounded(source, self.max_bytes))
        found, name = self._hash(text), self._kept_name.fullmatch(name_of(source).name)
        is_kept = text.startswith(self.head)
        said = text.partition("\n")[0].removeprefix(self.head) if is_kept else found
        if said != found or (name is not None and not found.startswith(name["hash"])):
            raise ValueError(
                f"altered since a run kept it; to use it as a {self.own} of your own, delete its "
                "first line and give it another name"
            )
        return text

    def kept_name(self, text: str) -> str:
        """The file name under which a run keeps `text`: it holds the hash, to notice any change."""
        return f"{self.kept}-{self._hash(text)[:12]}.yaml"

    def is_kept_name(self, name: str) -> bool:
        """Whether `name` is one that `kept_name` gives."""
        return self._kept_name.fullmatch(name) is not None

    def with_hash(self, body: str) -> str:
        """`body` under a line that holds its hash."""
        return f"{self.head}{self._hash(body)}\n{body}"

    def joined(self, lines: Iterable[str], sources: Sequence[Source]) -> str:
        """The `lines` of all own `sources` under a line with their hash.

        Raises ConfigurationError where they are more than half of what a file may have.
        """
        body, most = "".join(f"{line}\n" for line in lines), self.max_bytes // 2
        if len(body.encode()) > most:
            what = f"all own {self.noun}s together are larger than {most} bytes"
            raise ConfigurationError(f"{name_of(sources[-1])}:1:1: {what}")
        return self.with_hash(body)

    @property
    def _kept_name(self) -> re.Pattern[str]:
        return re.compile(rf"{self.kept}-(?P<hash>[0-9a-f]{{12}})\.yaml")

    def _hash(self, text: str) -> str:
        """The SHA-256 of `text` without a line of its own hash."""
        body = text.partition("\n")[2] if text.startswith(self.head) else text
        return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def yaml_files(folder: Path) -> list[Path]:
    """The *.yaml and *.yml files in a folder, by name. Raises ConfigurationError for none."""
    found = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])
    if not found:
        raise ConfigurationError(f"{folder}: the folder holds no *.yaml or *.yml file")
    return found


def name_of(source: Source) -> Path:
    """The path by which faults call `source`."""
    return source.name if isinstance(source, FileText) else source


class FileReader:
    """Reads one file and adds a line to `faults` for everything that is wrong with it.

    A file that `is_shipped` with this package is read faster.
    """

    def __init__(
        self, source: Source, faults: list[str], *, form: FileFormat, is_shipped: bool = False
    ) -> None:
        self.path, self.faults, self.text = name_of(source), faults, ""
        self._source, self._form, self._is_shipped = source, form, is_shipped

    def root(self) -> Node | None:
        """The nodes of the file, or None where it says nothing or has a fault."""
        try:
            self.text = self._form.text(self._source)
            return compose(self.text, max_levels=MAX_FILE_LEVELS, is_shipped=self._is_shipped)
        except OSError as error:
            self.fault_at(START, f"cannot be read: {error.strerror or error}")
        except ValueError as error:
            self.fault_at(START, f"cannot be read: {error}")
        except YamlError as error:
            self.fault_at(error.position, error.what)
        return None

    def fields(
        self,
        node: Node | None,
        where: str,
        *,
        allowed: Sequence[str],
        required: Sequence[str] = (),
    ) -> dict[str, Node]:
        """The values at `node` by key; empty where there is no node.

        `where` begins the faults; it may be empty where `node` is known to be a mapping.
        """
        found: dict[str, Node] = {}
        if node is None:
            return found
        if not isinstance(node, MappingNode):
            # Of a file of another kind nothing is repeated: it may be anyone's.
            got = kind_of(node) if where == WHOLE else shown(node)
            self.fault(node, f"{where}: must be a mapping of {', '.join(allowed)} (got {got})")
            return found
        label = f"{where}: " if where else ""
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or key.value not in allowed:
                text = key.value if isinstance(key, ScalarNode) else ""
                known = nearest_name(text, allowed)
                self.fault(key, f"{label}unknown key {shown(key)} ({known})")
            elif key.value in found:
                self.fault(key, f"{label}{key.value} is given twice")
            else:
                found[key.value] = value
        for name in required:
            if name not in found:
                self.fault(node, f"{label}{name} is missing")
        return found

    def items(self, node: Node | None, where: str) -> list[Node]:
        """The entries of the list at `node`; none where there is no node."""
        if node is None:
            return []
        if not isinstance(node, SequenceNode):
            self.fault(node, f"{where}: must be a list (got {shown(node)})")
            return []
        return list(node.value)

    def points(self, node: Node | None, where: str, *, count: int) -> list[tuple[float, ...]]:
        """The entries of the list at `node`, each `count` numbers."""
        return [
            self.numbers(item, f"{where}: number {index + 1}", count=count)
            for index, item in enumerate(self.items(node, where))
        ]

    def numbers(self, node: Node | None, where: str, *, count: int) -> tuple[float, ...]:
        """The `count` numbers at `node`."""
        items = self.items(node, where)
        if isinstance(node, SequenceNode) and len(items) != count:
            self.fault(node, f"{where}: must be {count} numbers (got {len(items)})")
        return tuple(self.number(item, where) for item in items)

    def number(self, node: Node | None, where: str) -> float:
        """The finite number at `node`; NaN where there is no node or no such number."""
        value = _number(node)
        if value is not None and math.isfinite(value):
            return float(value)
        if node is not None:
            self.fault(node, f"{where}: must be a finite number (got {shown(node)})")
        return math.nan

    def whole(self, node: Node | None, where: str, *, most: int) -> int | None:
        """The whole number at `node`, from 0 to `most`; None where there is no such number."""
        value = _number(node)
        if isinstance(value, int) and 0 <= value <= most:
            return value
        if node is not None:
            wanted = f"must be a whole number from 0 to {most}"
            self.fault(node, f"{where}: {wanted} (got {shown(node)})")
        return None

    def name(self, node: Node | None, where: str) -> str:
        """The name at `node`, one short line that can be printed."""
        if node is None:
            return ""
        name = node.value if isinstance(node, ScalarNode) else ""
        if not (name.strip() and name.isprintable() and len(name) <= MAX_NAME_LENGTH):
            wanted = f"must be text of 1 to {MAX_NAME_LENGTH} printable characters"
            label = f"{where}: " if where else ""
            self.fault(node, f"{label}name: {wanted} (got {shown(node)})")
        return str(name)

    def fault(self, node: Node, text: str) -> None:
        """Add one fault at the place of `node`."""
        self.fault_at(place_of(node), text)

    def fault_at(self, position: Position, text: str) -> None:
        """Add one fault at `position`."""
        self.faults.append(f"{self.path}:{position}: {text}")

    def place(self, node: Node) -> str:
        """`file:line:column` of `node`."""
        return f"{self.path}:{place_of(node)}"


def _number(node: Node | None) -> int | float | None:
    with suppress(ValueError):
        value = scalar(node) if isinstance(node, ScalarNode) else None
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return None


def kind_of(node: Node) -> str:
    """What a node is that should be another; of a text nothing is repeated."""
    if isinstance(node, ScalarNode):
        return "text"
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def shown(node: Node) -> str:
    """A wrong value in the words of a fault: one short printable line."""
    if isinstance(node, ScalarNode):
        return ascii(node.value[:MAX_SHOWN]) if node.value else "nothing"
    return kind_of(node)
