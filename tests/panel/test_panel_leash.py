"""What the panel's tests start does not outlive them, also where they are killed."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from leash import leashed
from panel_server import SECONDS, running_panel

STARTER = """
import subprocess, sys
from leash import leashed
process = subprocess.Popen(leashed(sys.executable, "-c", "print('up', flush=True); input()"))
print(process.pid, flush=True)
process.wait()
"""
only_on_linux = pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")


@only_on_linux
def test_a_leashed_process_ends_where_its_starter_is_killed() -> None:
    here = str(Path(__file__).parent)
    with subprocess.Popen(
        [sys.executable, "-c", STARTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": here},
        text=True,
    ) as starter:
        assert starter.stdout is not None
        number = next(int(line) for line in starter.stdout if line.strip() != "up")
        process = psutil.Process(number)
        assert process.is_running()
        starter.kill()
        process.wait(SECONDS)


def test_a_panel_under_test_starts_its_trainings_on_a_leash(tmp_path: Path) -> None:
    with running_panel(tmp_path / "data", here=tmp_path) as panel:
        program = panel.lab.trainings.program
    assert [*program] == leashed(sys.executable, "-P", "-m", "aimbot_lab")
