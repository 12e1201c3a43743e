"""Compiled kernels: each is compiled once for all processes, and kept only while it is used."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numba
import pytest

from aimbot_lab.foundation.kernels import jit
from aimbot_lab.foundation.kernels.jit import PACKAGE, kernel_sources
from tests.installed import said_by

DAY = 24 * 3600.0


def test_kernels_of_other_versions_go_once_long_unused(tmp_path) -> None:
    cache = tmp_path / "aimbot-lab"
    for name, days in (("kernels-old", 40), ("kernels-recent", 10), ("other-old", 40)):
        folder = cache / name
        folder.mkdir(parents=True)
        (folder / "code").write_bytes(b"x")
        os.utime(folder, (time.time() - days * DAY,) * 2)
    said_by("-c", "import aimbot_lab.foundation.kernels.jit", XDG_CACHE_HOME=str(tmp_path))
    left = {folder.name for folder in cache.iterdir()}
    assert len(left) == 3
    assert left > {"kernels-recent", "other-old"}


def test_compiled_code_is_kept_by_every_source_that_it_may_come_from() -> None:
    """Inlined kernels would otherwise stay as they were compiled before a change."""
    marks = ("@kernel", "@inlined", "@called", "@late_inlined", "@late_called", "@intrinsic")
    compiled = {
        path
        for path in PACKAGE.rglob("*.py")
        if any(line in marks for line in path.read_text("utf-8").splitlines())
    }
    assert len(compiled) > 10
    assert compiled <= set(kernel_sources())


def test_a_process_that_was_halted_while_it_compiled_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(numba.config), "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jit, "SECONDS_TO_COMPILE", 0.1)

    def total() -> None: ...

    with jit._alone_with(total), jit._alone_with(total):  # as two processes: two open files
        assert len(list(tmp_path.iterdir())) == 1


KERNEL = """
from aimbot_lab.foundation.kernels.jit import kernel

@kernel
def total(numbers):
    found = 0.0
    for number in numbers:
        found += number * number
    return found
"""
CALL = """
import sys
import numpy as np
import summing
print(flush=True)
sys.stdin.read(1)
summing.total(np.ones(3))
print(sum(summing.total.stats.cache_misses.values()))
"""


def test_processes_that_need_a_kernel_at_the_same_time_compile_it_once(tmp_path: Path) -> None:
    (tmp_path / "summing.py").write_text(KERNEL, "utf-8")
    root = Path(__file__).parents[2]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment |= {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])}
    environment.pop("NUMBA_CACHE_DIR", None)
    piped: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    words = [sys.executable, "-c", CALL]
    started = [subprocess.Popen(words, env=environment, **piped) for _ in range(2)]
    for one in started:
        one.stdout.readline()
    for one in started:
        one.stdin.write("x")
        one.stdin.flush()
    compiled = [int(one.communicate()[0]) for one in started]
    assert sorted(compiled) == [0, 1]
