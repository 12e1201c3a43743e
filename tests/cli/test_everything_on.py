"""An agent with every part of a network and every switch, through the commands of a run."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import invoke, invoke_plainly, train, write

from aimbot_lab.cli.commands.export import shown_differences
from aimbot_lab.training.agents.onnx_export import OnnxCheck

CURRICULUM = """
name: everything
seed: 7
env:
  num_envs: 16
  goto_win_radius: 12.0
  time_limit: 1.0
  bystanders: 6
  observation: {units: true}
lessons:
  - name: only
    targets: {goto: 1, free: 1}
    difficulty: {goto: [1, 1, 0, 0, 0]}
train:
  algo: hybrid_ppo
  total_steps: 1_024
  n_steps: 16
  batch_size: 128
  n_epochs: 1
  aim: hybrid
  masks: true
  objective: per_branch
  dual_clip: 3
  target: attention
  samples: {keep: 2}
  network:
    layers: [8]
    scaling: running
    scalars: [8]
    units: {layers: [8]}
    memory: {size: 8}
  torch_threads: 1
tracking: {experiment: tests}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """(data folder, id of a run that is too short to learn anything)."""
    folder = tmp_path_factory.mktemp("everything")
    document: Any = train(folder / "data", write(folder, text=CURRICULUM))
    return folder / "data", document["run_id"]


def test_it_is_evaluated_from_what_it_remembers_twice_alike(run: tuple[Path, str]) -> None:
    data, run_id = run
    words = ("evaluate", run_id, "--episodes", 6, "--json")
    one, other = (invoke(data, *words).document for _ in range(2))
    assert one["players"] == other["players"]
    assert one["players"]


def test_its_episode_is_kept_as_a_replay_that_is_played_to_the_same_end(
    run: tuple[Path, str], tmp_path: Path
) -> None:
    data, run_id = run
    file = tmp_path / "episode.json"
    invoke(data, "record", run_id, "--target", "free", "-o", file)
    document = json.loads(invoke_plainly("replay", file, "--json").output)
    assert document["decisions"] > 0
    assert document["trajectory_sha256"] == json.loads(file.read_text())["trajectory_sha256"]


def test_a_curriculum_that_goes_on_from_it_takes_its_weights(
    run: tuple[Path, str], tmp_path: Path
) -> None:
    data, run_id = run
    invoke(data, "export", run_id, "-o", tmp_path / "agent")
    file = write(tmp_path, text=CURRICULUM)
    begun = train(data, file, "--init-from", tmp_path / "agent", "--set", "train.total_steps=256")
    assert begun["status"] == "FINISHED"
    broken = invoke(
        data,
        *("run", file, "--init-from", tmp_path / "agent"),
        *("--set", "train.network.memory.size=9"),
        wanted=(1, 2),
    )
    assert len(broken.said.strip().splitlines()) == 1


def test_an_exported_file_is_said_to_choose_aim_and_remember_within_so_much() -> None:
    check = OnnxCheck(10_000, 0, 2.34e-6, steps=100, memory_difference=5e-7)
    assert shown_differences(check) == (
        "0 other choices, mouse within 2e-06, memory at the end within 5e-07"
    )
    assert shown_differences(OnnxCheck(10_000, 0, 0.0)) == "0 other choices, mouse within 0"
