"""ML-Agents' own trainer learns Goto on our player, which takes ten minutes or more.

With AIMBOT_LAB_ML_AGENTS_TRAINING=1, `make real-ml-agents` runs this.
"""

import os
import subprocess
from pathlib import Path

import pytest

import aimbot_lab.mlagents
from aimbot_lab.experiment.conversion.players import export_player
from tests.mlagents.test_real_ml_agents import PYTHON, free_port
from tests.mlagents.test_real_trainer import told

pytestmark = [
    pytest.mark.real_ml_agents,
    pytest.mark.skipif(
        not os.environ.get("AIMBOT_LAB_ML_AGENTS_TRAINING"),
        reason="ten minutes or more; AIMBOT_LAB_ML_AGENTS_TRAINING=1 runs it",
    ),
]
FILE = Path(aimbot_lab.mlagents.__file__).parent / "goto_ppo.yaml"


def test_the_real_trainer_learns_goto_by_its_own_curriculum_and_sampler(tmp_path: Path) -> None:
    player = export_player(tmp_path / "build")
    command = [str(PYTHON.parent / "mlagents-learn"), str(FILE), "--env", str(player)]
    command += ["--seed=1", "--run-id=goto", "--timeout-wait=300", f"--base-port={free_port()}"]
    command += ["--env-args", "--curriculum", "goto", "--agents", "64"]
    with (tmp_path / "learn.log").open("w", encoding="utf-8") as log:
        done = subprocess.run(
            command,
            stdout=log,
            stderr=log,
            timeout=2 * 3600,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    assert done.returncode == 0, (tmp_path / "learn.log").read_text(encoding="utf-8")[-2000:]
    results = tmp_path / "results" / "goto"
    said = (results / "run_logs" / "Player-0.log").read_text(encoding="utf-8")
    assert said.index("goto_win_radius: 4.0") < said.index("goto_win_radius: 1.0")
    assert "environment parameter move_speed: Uniform(" in said
    assert "environment parameter difficulty.goto.5: 0.0" in said
    wins = [share for _, share in told("wins", results / "AimbotLab")]
    assert max(wins[:2]) < 0.3
    assert sum(wins[-3:]) / 3 > 0.9
