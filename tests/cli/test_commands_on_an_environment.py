"""The commands on runs in a Gymnasium environment."""

from pathlib import Path

import pytest
from tiny_runs import invoke, train, write

CURRICULUM = """
name: pole
env: {world: gymnasium, id: CartPole-v1, num_envs: 4, win: {length_above: 8}}
lessons: [{name: up, completion_criteria: {threshold: 0.9}}]
train: {algo: ppo, total_steps: 256, n_steps: 32, batch_size: 64, network: {layers: [4]}}
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    train(folder, write(folder, text=CURRICULUM))
    return folder


def test_a_world_that_counts_steps_has_its_times_in_steps(data: Path) -> None:
    output = invoke(data, "evaluate", "latest", "--episodes", 10, "--no-baselines").output
    row = next(line.split() for line in output.splitlines() if line.startswith("sampled"))
    assert "steps" in row
    assert "s" not in row


def test_small_returns_are_shown_with_their_decimals(data: Path) -> None:
    """A length of 10 to 40 steps is CartPole's return: its mean over ten episodes has decimals."""
    output = invoke(data, "evaluate", "latest", "--episodes", 9, "--seed", 2).output
    row = next(line.split() for line in output.splitlines() if line.startswith("sampled"))
    assert "." in row[-1]
