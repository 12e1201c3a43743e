"""ML-Agents' own trainer on our demonstrations and our player: `make real-ml-agents` runs these."""

import os
from pathlib import Path

import pytest

import aimbot_lab.mlagents
from aimbot_lab.experiment.conversion.players import export_player
from tests.cli.tiny_runs import invoke, train, write
from tests.mlagents.real_programs import HERE, learned, told_by

pytestmark = pytest.mark.real_ml_agents
CURRICULUM = """
name: learned
env: {num_envs: 64, decision_period: 10, time_limit: 3.0}
lessons: [{name: open ground, targets: {goto: 1}, difficulty: {goto: [1, 0, 0, 0, 0]}}]
train: {algo: ppo, total_steps: 2_048, n_steps: 32, batch_size: 512}
"""


def test_the_real_trainer_clones_a_demonstration(tmp_path: Path) -> None:
    train(tmp_path / "data", write(tmp_path))
    demo = tmp_path / "expert.demo"
    invoke(tmp_path / "data", "record", "latest", "--demo", "-o", demo, "--episodes", 6)
    found = told_by("trainer_calls.py", "clone", demo)
    assert found["actions"] == "Continuous: 1, Discrete: (3, 3, 2)"
    assert found["shapes"] == [[51]]
    assert found["ends"] == 6
    assert found["pairs"] > 6 * 5
    losses = found["losses"]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_a_curriculum_and_a_sampler_of_the_real_trainer_reach_the_player(tmp_path: Path) -> None:
    curriculum = tmp_path / "learned.yaml"
    curriculum.write_text(CURRICULUM, encoding="utf-8")
    player = export_player(tmp_path / "build")
    options = "--curriculum", curriculum, "--agents", 64
    log = learned(tmp_path, HERE / "ppo.yaml", player, *options, timeout=500)
    assert log.index("goto_win_radius: 5.0") < log.index("goto_win_radius: 1.0")
    assert "environment parameter move_speed: Uniform(" in log
    wins = told_by("trainer_calls.py", "wins", tmp_path / "results" / "learned" / "AimbotLab")
    assert wins[-1][0] >= 4_000
    assert all(0.0 <= share <= 1.0 for _, share in wins)


@pytest.mark.skipif(
    not os.environ.get("AIMBOT_LAB_ML_AGENTS_TRAINING"),
    reason="ten minutes or more; AIMBOT_LAB_ML_AGENTS_TRAINING=1 runs it",
)
def test_the_real_trainer_learns_goto_by_its_own_curriculum_and_sampler(tmp_path: Path) -> None:
    file = Path(aimbot_lab.mlagents.__file__).parent / "goto_ppo.yaml"
    player, options = export_player(tmp_path / "build"), ("--curriculum", "goto", "--agents", 64)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    log = learned(tmp_path, file, player, *options, timeout=2 * 3600, env=env)
    assert log.index("goto_win_radius: 4.0") < log.index("goto_win_radius: 1.0")
    assert "environment parameter move_speed: Uniform(" in log
    assert "environment parameter difficulty.goto.5: 0.0" in log
    folder = tmp_path / "results" / "learned" / "AimbotLab"
    wins = [share for _, share in told_by("trainer_calls.py", "wins", folder)]
    assert max(wins[:2]) < 0.3
    assert sum(wins[-3:]) / 3 > 0.9
