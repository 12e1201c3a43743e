"""One reader of YAML nodes, with positions, below every kind of file."""

import ast
from pathlib import Path

import pytest

from aimbot_lab.foundation.yaml_nodes import (
    Position,
    TooDeepError,
    YamlError,
    compose,
    position_after,
    position_of,
)

PACKAGE = Path(__file__).parent.parent.parent / "aimbot_lab"


def composers(path: Path) -> bool:
    """Whether the file at `path` has PyYAML read a text, or derives a reader of its own."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return any(
        name.startswith("yaml.") and name.endswith(("Loader", "load", "compose")) for name in names
    )


def test_every_kind_of_file_is_read_by_the_one_reader() -> None:
    assert [path.name for path in PACKAGE.rglob("*.py") if composers(path)] == ["yaml_nodes.py"]


@pytest.mark.parametrize("levels", [20, 40])
def test_deep_nesting_is_refused_where_it_goes_too_deep(levels: int) -> None:
    with pytest.raises(TooDeepError, match=f"nested deeper than {levels} levels") as refused:
        compose("a:\n  " + "[" * 100, max_levels=levels)
    assert refused.value.position == Position(2, levels + 2)


def test_an_escape_beyond_unicode_is_refused_at_its_place() -> None:
    with pytest.raises(YamlError, match="an escape is too large") as refused:
        compose('a: 1\nb: "\\UFFFFFFFF"')
    assert refused.value.position.line == 2


@pytest.mark.parametrize("text", ["", "a: 1", "a: 1\n", "a:\n  b: é"])
def test_positions_count_from_one_in_lines_and_characters(text: str) -> None:
    lines = text.split("\n")
    assert position_after(text) == Position(len(lines), len(lines[-1]) + 1)
    assert position_of(None) == Position(1, 1)


def test_a_broken_file_of_the_package_is_reported_as_any_other() -> None:
    for is_shipped in (False, True):
        with pytest.raises(YamlError, match="not valid YAML: while parsing a flow") as refused:
            compose("a: [1,\nb: {", is_shipped=is_shipped)
        assert refused.value.position.line == 2
