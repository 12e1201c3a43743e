"""Compiled kernels of earlier versions do not pile up."""

import os
import subprocess
import sys
import time
from pathlib import Path

from aimbot_lab.foundation.kernels.jit import PACKAGE, kernel_sources

DAY = 24 * 3600.0


def test_kernels_of_other_versions_go_once_long_unused(tmp_path) -> None:
    cache = tmp_path / "aimbot-lab"
    for name, days in (("kernels-old", 40), ("kernels-recent", 10), ("other-old", 40)):
        folder = cache / name
        folder.mkdir(parents=True)
        (folder / "code").write_bytes(b"x")
        os.utime(folder, (time.time() - days * DAY,) * 2)
    subprocess.run(
        [sys.executable, "-c", "import aimbot_lab.foundation.kernels.jit"],
        check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        cwd=Path(__file__).parents[2],
    )
    left = {folder.name for folder in cache.iterdir()}
    assert len(left) == 3
    assert left > {"kernels-recent", "other-old"}


def test_compiled_code_is_kept_by_every_source_that_it_may_come_from() -> None:
    """Inlined kernels would otherwise stay as they were compiled before a change."""
    marks = ("@kernel", "@inlined", "@called", "@intrinsic")
    compiled = {
        path
        for path in PACKAGE.rglob("*.py")
        if any(line in marks for line in path.read_text("utf-8").splitlines())
    }
    assert len(compiled) > 20
    assert compiled <= set(kernel_sources())
