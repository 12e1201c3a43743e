"""A curriculum and plain stable-baselines3 learn to the same proof, by turns."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from aimbot_lab.bench.train import OURS, THEIRS, bench_peer, ratio
from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.plain_ppo import learn_plain_ppo
from aimbot_lab.training.settings import TrainingPlan

CURRICULUM = """
name: pole
env: {world: gymnasium, id: CartPole-v1, num_envs: 4, win: {return_above: 15}}
lessons:
  - name: up
    parameters:
      length: {sampler_type: uniform, sampler_parameters: {min_value: 0.3, max_value: 0.9}}
      gravity: 9.0
    completion_criteria: {threshold: 0.2, min_lesson_length: 20}
train: {algo: ppo, total_steps: 2048, n_steps: 32, batch_size: 64, network: {layers: [4]}}
"""


def plan(folder: Path, *overrides: str) -> TrainingPlan:
    (folder / "pole.yaml").write_text(CURRICULUM, encoding="utf-8")
    config = load_curriculum(folder / "pole.yaml", overrides).config
    return TrainingPlan(config.seed, config.env, config.lessons, config.train)


def test_both_end_where_the_lesson_is_proven(tmp_path: Path) -> None:
    found = bench_peer(plan(tmp_path), seeds=1, say=lambda _: None).document
    done = found["trainings"]
    assert [(one["learner"], one["seed"], one["passed"]) for one in done] == [
        (OURS, 1, True),
        (THEIRS, 1, True),
    ]
    assert all(0 < one["steps"] < 2048 for one in done)
    assert found["ratio"] == pytest.approx(done[1]["seconds"] / done[0]["seconds"])


def test_steps_that_are_spent_before_the_proof_are_no_pass(tmp_path: Path) -> None:
    hard = "lessons.0.completion_criteria.threshold=0.99"
    found = learn_plain_ppo(plan(tmp_path, hard, "train.total_steps=256"))
    assert (found.passed, found.steps) == (False, 256)


def test_the_ratio_is_that_of_seeds_with_which_both_passed() -> None:
    def one(learner: str, seed: int, seconds: float, passed: bool = True) -> dict:
        return {"learner": learner, "seed": seed, "seconds": seconds, "passed": passed}

    pairs = [one(OURS, 1, 2.0), one(THEIRS, 1, 6.0), one(OURS, 2, 1.0), one(THEIRS, 2, 5.0)]
    failed = [one(OURS, 3, 1.0), one(THEIRS, 3, 90.0, passed=False)]
    assert ratio([*pairs, *failed]) == 4.0
    assert ratio(failed) is None


def test_another_world_is_refused(tmp_path: Path) -> None:
    config = load_curriculum("goto").config
    arena = TrainingPlan(1, config.env, config.lessons, config.train)
    with pytest.raises(ConfigurationError, match="must be a Gymnasium environment"):
        learn_plain_ppo(arena)


def test_the_command_reports_both_and_their_ratio(tmp_path: Path) -> None:
    plan(tmp_path)
    words = ["bench", "peer", str(tmp_path / "pole.yaml"), "--seeds", "1"]
    shown = CliRunner().invoke(cli, words)
    assert shown.exit_code == 0, shown.output
    assert "over those of the curriculum: " in shown.stdout
    document = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert [one["learner"] for one in document["trainings"]] == [OURS, THEIRS]
    assert document["ratio"] > 0
