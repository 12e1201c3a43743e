"""The YAML that curricula are written in: what counts as a number, a yes or no, or text.

Scalars follow YAML 1.2, as editors do: only true and false are yes or no, so `no` is a text;
`1e-4` is a number, `010` and `12:30` are not. Underscores in numbers are allowed.
"""

import re

import yaml

from aimbot_lab.foundation.yaml_nodes import (
    NodeLoader,
    Position,
    TooDeepError,
    position_after,
    position_of,
)

MAX_LEVELS = 40

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


class YamlError(Exception):
    """A text that is not a YAML document: what is wrong, and where."""

    def __init__(self, what: str, position: Position) -> None:
        super().__init__(what)
        self.what = what
        self.position = position


class _Loader(NodeLoader):
    """Nodes whose scalars follow YAML 1.2."""

    max_levels = MAX_LEVELS


class _Dumper(yaml.SafeDumper):
    """Quotes whatever this dialect or YAML 1.1 would not take for text."""


_Loader.yaml_implicit_resolvers = {}  # without those of YAML 1.1
for _tag, _pattern, _first in _SCALARS:
    _expression = re.compile(rf"^(?:{_pattern})$", re.VERBOSE)
    _Loader.add_implicit_resolver(_tag, _expression, _first)
    _Dumper.add_implicit_resolver(_tag, _expression, _first)


def compose(text: str) -> yaml.Node | None:
    """The document in `text` as nodes, None where it is empty. Raises YamlError."""
    bad = _Loader.NON_PRINTABLE.search(text)
    if bad:
        position = position_after(text[: bad.start()])
        raise YamlError(f"not valid YAML: character U+{ord(bad[0]):04X}", position)
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    except TooDeepError as error:
        raise YamlError(str(error), error.position) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or loader.get_mark()
        raise YamlError(f"not valid YAML: {_reason(error)}", position_of(mark)) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        what = "not valid YAML: a number or an escape is too large"
        raise YamlError(what, position_of(loader.get_mark())) from error
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


def _reason(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "unknown problem"
    if problem.startswith("found character '\\t'"):
        problem = "found a tab; indent with spaces"
    return f"{error.context}, {problem}" if error.context else problem
