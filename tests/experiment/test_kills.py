"""A run that is killed at random moments and resumed is, in the end, the unbroken run.

`make kills` sets AIMBOT_LAB_KILLS=4: ten runs of hybrid_ppo, six of it with all parts of a network,
six by self-play and two of each other kind of algorithm, each killed so often (once less where the
last kill comes too late); some minutes. It also goes through the chosen instants so often, with
other seeds. Without it two runs of hybrid_ppo are killed, three times each. `make equality` sets
AIMBOT_LAB_LIBRARY_KILLS=5, for a run of each algorithm of the libraries.
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
POINTS_SCRIPT = Path(__file__).with_name("kill_points.py")
OTHERS = "self_play", "all_parts", "ppo", "recurrent_ppo", "trpo", "dqn"
RUNS = {"hybrid_ppo": 10, "all_parts": 6, "self_play": 6}
KILLS = int(os.environ.get("AIMBOT_LAB_KILLS", "0"))
LIBRARY_KILLS = int(os.environ.get("AIMBOT_LAB_LIBRARY_KILLS", "0"))
SAME_AFTER_A_KILL = ("same_status", "same_metrics", "same_files", "same_state")
SAME = ("same_state", "same_steps", "same_metrics", "same_points", "same_files")


def killed_runs(folder: Path, *arguments: object, script: Path = SCRIPT) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(script), str(folder), *map(str, arguments)],
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


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(KILLS or 1))
def test_a_kill_at_any_chosen_instant_changes_nothing(tmp_path: Path, number: int) -> None:
    lines = killed_runs(tmp_path, number, script=POINTS_SCRIPT)
    assert len(lines) >= 20
    for line in lines:
        assert line["died"], line
        differing = [name for name in SAME_AFTER_A_KILL if not line[name]]
        assert differing == [], line["point"]
        assert line["twice"] == 0, line
        has_no_record = line["point"].startswith("record") and "whole" not in line["point"]
        assert line["runs"] == 1 + has_no_record, line
        after_its_end = line["point"].startswith("steps spent") and "not noted" not in line["point"]
        if after_its_end:
            assert line["status_found"] == "FAILED", line
