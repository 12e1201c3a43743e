"""A tiny curriculum for CartPole, and tiny trainings of any curriculum."""

from pathlib import Path

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.named_code import always
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training
from tests.training.tiny_training import learn

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


def planned(path: Path, algo: str, text: str = CURRICULUM) -> TrainingPlan:
    """The plan of the curriculum `text`, with `algo` in the place of ALGO."""
    path.write_text(text.replace("ALGO", algo), encoding="utf-8")
    config = load_curriculum(path, may_run=always).config
    return TrainingPlan(1, config.env, config.lessons, config.train)


def trained(plan: TrainingPlan) -> Training:
    """A training that came to its end."""
    training = Training(plan)
    learn(training)
    return training


def agent_of(training: Training) -> Agent:
    return Agent(training.model.policy, training.env.world.spec, training.plan.train)
