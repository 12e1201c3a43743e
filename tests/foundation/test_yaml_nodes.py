"""One reader of YAML nodes, with positions, below curricula, sweeps and target presets."""

import ast
from pathlib import Path

import pytest
import yaml

from aimbot_lab.foundation.yaml_nodes import (
    NodeLoader,
    Position,
    TooDeepError,
    position_after,
    position_of,
)

PACKAGE = Path(__file__).parent.parent.parent / "aimbot_lab"


def bases(path: Path) -> set[str]:
    """The base classes named in the file at `path`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {ast.unparse(base) for node in classes for base in node.bases}


def test_every_loader_of_yaml_derives_from_the_one_reader() -> None:
    own = [path.name for path in PACKAGE.rglob("*.py") if "yaml.SafeLoader" in bases(path)]
    assert own == ["yaml_nodes.py"]


def test_deep_nesting_is_refused_where_it_goes_too_deep() -> None:
    with pytest.raises(TooDeepError, match="nested deeper than 40 levels") as refused:
        yaml.compose("a:\n  " + "[" * 100, Loader=NodeLoader)
    assert refused.value.position == Position(2, 42)


@pytest.mark.parametrize("text", ["", "a: 1", "a: 1\n", "a:\n  b: é"])
def test_positions_count_from_one_in_lines_and_characters(text: str) -> None:
    lines = text.split("\n")
    assert position_after(text) == Position(len(lines), len(lines[-1]) + 1)
    assert position_of(None) == Position(1, 1)
