"""A tiny curriculum for CartPole."""

from pathlib import Path

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.training.settings import TrainingPlan

CURRICULUM = """
name: corridor
env:
  world: gymnasium
  id: CartPole-v1
  num_envs: 8
  win: {return_above: 100}
lessons:
  - name: one
    parameters: {length: {sampler_type: uniform, sampler_parameters: {min_value: 0.4}}}
train: {algo: ALGO, total_steps: 2048, n_steps: 32, batch_size: 64, n_epochs: 2}
"""


def planned(path: Path, algo: str) -> TrainingPlan:
    path.write_text(CURRICULUM.replace("ALGO", algo), encoding="utf-8")
    config = load_curriculum(path).config
    return TrainingPlan(1, config.env, config.lessons, config.train)
