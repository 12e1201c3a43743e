"""32 pages at once, one of them slow: each is shown the newest, and memory stays flat.

A campaign, which takes AIMBOT_LAB_PAGES seconds: in the first minutes libraries are still loaded,
and each of the server's threads finds the memory that it needs; from then on it may not grow.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from many_pages import SLOW

SCRIPT = Path(__file__).with_name("many_pages.py")
SECONDS = float(os.environ.get("AIMBOT_LAB_PAGES", "60"))
MAX_GROWTH = 0.005  # from the third quarter of the time to the last
MIN_SHOWN = 1.0  # frames a second that the slowest page gets
pytestmark = pytest.mark.campaign


def test_the_slowest_of_32_pages_gets_frames_and_the_panels_memory_stays_flat(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), str(SECONDS)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["others"]) == 31
    assert sum(found["cuts"]) == found["cuts"][SLOW]  # no other page was cut off
    assert found["fewest_of_others"] > 0
    assert found["slowest"] > MIN_SHOWN * SECONDS
    assert found["last_mb"] - found["third_mb"] < MAX_GROWTH * found["third_mb"]
