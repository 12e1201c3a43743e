"""Tests give a clock to what reads one; they never replace that of the process.

The event loop of a server that another test keeps running would wait for the difference, for hours.
"""

import re
from pathlib import Path

import pytest

REPLACED = re.compile(r"setattr\(\s*[^)]*\btime\b[\"',.\s]+monotonic")


def replacing(folder: Path) -> list[Path]:
    """The files that replace the clock, but for this one."""
    files = [path for path in folder.rglob("*.py") if path != Path(__file__)]
    return [path for path in files if REPLACED.search(path.read_text("utf-8"))]


def test_no_test_replaces_the_clock_of_the_process() -> None:
    assert replacing(Path(__file__).parent) == []


@pytest.mark.parametrize("what", ['costs.time, "monotonic"', '"aimbot_lab.costs.time.monotonic"'])
def test_a_replaced_clock_is_found(tmp_path: Path, what: str) -> None:
    file = tmp_path / "test_costs.py"
    file.write_text(f"monkeypatch.setattr({what}, lambda: 0.0)", encoding="utf-8")
    assert replacing(tmp_path) == [file]
