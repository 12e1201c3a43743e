"""What `make size` prints: how large the package and its tests are.

Code is every line with a token that is no comment and no docstring; a record type is a class that
is a NamedTuple, a TypedDict or a dataclass.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class Size(NamedTuple):
    """Of one folder."""

    modules: int
    lines: int
    code: int
    classes: int
    records: int
    functions: int


def size(folder: Path) -> Size:
    """What all Python files below `folder` add up to."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return Size(
        modules=len(texts),
        lines=sum(len(text.splitlines()) for text in texts),
        code=sum(map(code_lines, texts, trees)),
        classes=len(classes),
        records=sum(map(is_record, classes)),
        functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
    )


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines of `text` with code."""
    docstrings = {line for first, last in _docstrings(tree) for line in range(first, last + 1)}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """First and last lines of texts that stand alone, also those below attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, node.end_lineno or node.lineno


def is_record(node: ast.ClassDef) -> bool:
    """Whether the class only holds fields by its form."""
    named = [_last_name(base) for base in node.bases]
    decorated = [_last_name(one) for one in node.decorator_list]
    return "dataclass" in decorated or not {"NamedTuple", "TypedDict"}.isdisjoint(named)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def main() -> None:
    """Print the table."""
    head = ("", "modules", "lines", "code", "classes", "record types", "functions")
    rows = []
    for name in ("aimbot_lab", "tests"):
        found = size(ROOT / name)
        share = f"{found.records:,} ({found.records / max(found.classes, 1):.0%})"
        numbers = [f"{one:,}" for one in (found.modules, found.lines, found.code, found.classes)]
        rows.append((name, *numbers, share, f"{found.functions:,}"))
    for row in (head, *rows):
        line = "".join(f"{one:>14}" if place else f"{one:<10}" for place, one in enumerate(row))
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
