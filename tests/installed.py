"""Entry points of packages that are not installed, as if they were; programs in new processes."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from aimbot_lab.foundation import registry


def install(monkeypatch: pytest.MonkeyPatch, group: str, name: str, value: str) -> None:
    """Have an installed package bring `name` of the group `aimbot_lab.GROUP`."""
    there = registry._installed
    entry = EntryPoint(name, value, f"aimbot_lab.{group}")

    def installed(asked: str) -> tuple[EntryPoint, ...]:
        return (*there(asked), *((entry,) if asked == entry.group else ()))

    monkeypatch.setattr(registry, "_installed", installed)


def said_by(*words: object, cwd: Path | None = None, seconds: float = 600.0, **given: str) -> str:
    """What Python with these words prints in a process of its own, with `given` variables."""
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": root, **given},
        capture_output=True,
        encoding="utf-8",
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr
    return done.stdout
