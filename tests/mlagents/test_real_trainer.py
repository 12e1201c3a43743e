"""ML-Agents' own trainer on our demonstrations and our player: `make real-ml-agents` runs these."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.experiment.conversion.players import export_player
from tests.cli.tiny_runs import invoke, train, write
from tests.mlagents import trainer_calls
from tests.mlagents.test_real_ml_agents import PYTHON, ROOT, free_port

pytestmark = pytest.mark.real_ml_agents
CURRICULUM = """
name: learned
env: {num_envs: 64, decision_period: 10, time_limit: 3.0}
lessons: [{name: open ground, targets: {goto: 1}, difficulty: {goto: [1, 0, 0, 0, 0]}}]
train: {algo: ppo, total_steps: 2_048, n_steps: 32, batch_size: 512}
"""


def told(kind: str, path: Path) -> Any:
    """What `trainer_calls` tells, by the Python of the real packages."""
    command = [str(PYTHON), str(Path(trainer_calls.__file__)), kind, str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.rpartition("\n")[2])


def test_the_real_trainer_clones_a_demonstration(tmp_path: Path) -> None:
    train(tmp_path / "data", write(tmp_path))
    demo = tmp_path / "expert.demo"
    invoke(tmp_path / "data", "record", "latest", "--demo", "-o", demo, "--episodes", 6)
    found = told("clone", demo)
    assert found["actions"] == "Continuous: 1, Discrete: (3, 3, 2)"
    assert found["shapes"] == [[51]]
    assert found["ends"] == 6
    assert found["pairs"] > 6 * 5
    losses = found["losses"]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_a_curriculum_and_a_sampler_of_the_real_trainer_reach_the_player(tmp_path: Path) -> None:
    player = export_player(tmp_path / "build")
    curriculum = tmp_path / "learned.yaml"
    curriculum.write_text(CURRICULUM, encoding="utf-8")
    command = [str(PYTHON.parent / "mlagents-learn"), str(Path(__file__).parent / "ppo.yaml")]
    command += ["--env", str(player), "--seed=1", "--run-id=learned", "--timeout-wait=300"]
    command += [f"--base-port={free_port()}"]
    command += ["--env-args", "--curriculum", str(curriculum), "--agents", "64"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=500, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results = tmp_path / "results" / "learned"
    log = (results / "run_logs" / "Player-0.log").read_text(encoding="utf-8")
    assert log.index("goto_win_radius: 5.0") < log.index("goto_win_radius: 1.0")
    assert "environment parameter move_speed: Uniform(" in log
    wins = told("wins", results / "AimbotLab")
    assert wins[-1][0] >= 4_000
    assert all(0.0 <= share <= 1.0 for _, share in wins)
