"""YAML text as nodes with positions, within limits: the one reader of every kind of file.

Curricula, sweeps, trainer files, target blocks, scenes, layouts and maps are read here. Scalars
follow YAML 1.2, as editors do: only true and false are yes or no, so `no` is a text; `1e-4` is a
number, `010` and `12:30` are not. Underscores in numbers are allowed.
"""

import re
from contextlib import suppress
from typing import Any, NamedTuple

import yaml

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
_TOO_LARGE = "a number or an escape is too large"
_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Position(NamedTuple):
    """A place in a text, both counted from 1."""

    line: int
    column: int


class YamlError(Exception):
    """A text that is not a YAML document: what is wrong, and where.

    `problem` says the same in the parser's own words.
    """

    def __init__(self, what: str, position: Position, *, problem: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.position = position
        self.problem = problem


class TooDeepError(YamlError):
    """Lists or mappings nested deeper than allowed."""


class _Loader(yaml.SafeLoader):
    """Composes nodes; refuses deep nesting at once, before Python's own stack gives way.

    PyYAML alone takes a second per 1,000 levels, and libyaml's parser crashes.
    """

    def __init__(self, text: str, max_levels: int) -> None:
        super().__init__(text)
        self._levels_left = self._max_levels = max_levels

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node. Raises TooDeepError."""
        if self._levels_left == 0:
            event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
            what = f"is nested deeper than {self._max_levels} levels"
            raise TooDeepError(what, position_of(event.start_mark))
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
        raise YamlError(
            f"not valid YAML: character U+{ord(bad[0]):04X}",
            position_after(text[: bad.start()]),
            problem="special characters are not allowed",
        )
    loader = _Loader(text, max_levels)
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or loader.get_mark()
        raise YamlError(
            f"not valid YAML: {_reason(error)}", position_of(mark), problem=f"{error.problem}"
        ) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise YamlError(
            f"not valid YAML: {_TOO_LARGE}", position_of(loader.get_mark()), problem=_TOO_LARGE
        ) from error
    finally:
        loader.dispose()


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
