"""A run that is killed at random moments and resumed is, in the end, the unbroken run.

`make kills` sets AIMBOT_LAB_KILLS=4: ten runs of hybrid_ppo, six of it with all parts of a network,
six by self-play and two of each other kind of algorithm, each killed so often (once less where the
last kill comes too late); some minutes. Without it two runs of hybrid_ppo are killed, three times
each. `make equality` sets AIMBOT_LAB_LIBRARY_KILLS=5, for a run of each algorithm of the libraries.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.experiment.killed_runs import LIBRARY

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("killed_runs.py")
OTHERS = "self_play", "all_parts", "ppo", "recurrent_ppo", "trpo", "dqn"
RUNS = {"hybrid_ppo": 10, "all_parts": 6, "self_play": 6}
KILLS = int(os.environ.get("AIMBOT_LAB_KILLS", "0"))
LIBRARY_KILLS = int(os.environ.get("AIMBOT_LAB_LIBRARY_KILLS", "0"))
SAME = ("same_state", "same_steps", "same_metrics", "same_points", "same_files")


def killed_runs(folder: Path, *arguments: object) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.campaign
@pytest.mark.parametrize("algo", ["hybrid_ppo", *(OTHERS if KILLS else [])])
def test_killed_runs_end_as_unbroken_ones(tmp_path: Path, algo: str) -> None:
    runs, kills = (RUNS.get(algo, 2), KILLS) if KILLS else (2, 3)
    lines = killed_runs(tmp_path, runs, kills, 2, algo)
    assert all(line["kills"] >= kills - 1 for line in lines)
    assert {line["status"] for line in lines} == {"FINISHED", "FAILED"}  # by turns
    for line in lines:
        assert all(line[name] for name in SAME), line
        assert line["twice"] == 0, line
        assert line["status_in_store"] == line["status"], line


@pytest.mark.campaign
@pytest.mark.parametrize("algo", [*LIBRARY, "maskable_ppo"] if LIBRARY_KILLS else ["sac"])
def test_killed_runs_of_the_libraries_end_as_unbroken_ones(tmp_path: Path, algo: str) -> None:
    kills = LIBRARY_KILLS or 2
    (line,) = killed_runs(tmp_path, 1, kills, 2, algo)
    assert line["kills"] >= kills - 1
    assert all(line[name] for name in SAME), line
