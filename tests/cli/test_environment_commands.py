"""The commands on runs in a Gymnasium environment, and on an agent with everything on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import invoke, invoke_plainly, train, write

from aimbot_lab.cli.commands.export import shown_differences
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import find_run, list_runs
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.training.agents.onnx_export import OnnxCheck
from tests.installed import install

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


def test_a_world_that_counts_steps_has_its_times_in_steps_and_no_column_of_draws(
    data: Path,
) -> None:
    output = invoke(data, "evaluate", "latest", "--episodes", 10, "--no-baselines").output
    assert "draws" not in output.splitlines()[0]
    row = next(line.split() for line in output.splitlines() if line.startswith("sampled"))
    assert "steps" in row
    assert "s" not in row
    assert "." in row[-1]  # a small return has its decimals


RACE = """
name: race
env: {world: walk, num_envs: 4, agents: 2}
lessons: [{name: right, completion_criteria: {threshold: 0.99}}]
train: {algo: ppo, total_steps: 1024, n_steps: 32, batch_size: 64, network: {layers: [4]}}
"""


def test_draws_are_metrics_of_a_run_and_columns_of_its_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "worlds", "walk", "tests.worlds.stranger:WALK")
    done = train(tmp_path, write(tmp_path, text=RACE))
    output = invoke(tmp_path, "evaluate", "latest", "--episodes", 40).output
    head, first, *_ = output.splitlines()
    heads = ["wins", "draws", "median to win", "return [95 %]"]
    assert re.split(r"\s{2,}", head.strip())[-4:] == heads
    found = invoke(tmp_path, "evaluate", "latest", "--episodes", 40, "--json").document
    overall = found["players"]["sampled"]["overall"]
    assert overall["wins"] + overall["draws"] <= overall["episodes"] == 40
    assert overall["draws"] > 0
    columns = re.split(r"\s{2,}", first.strip())
    assert columns[-4:-2] == [f"{overall['wins']} of 40", str(overall["draws"])]
    metrics = find_run(DataFolder(tmp_path), done["run_id"]).metrics
    assert metrics["test/draw_rate"] == metrics["test/draw_rate/right"] == overall["draws"] / 40
    assert 0 < metrics["rollout/draw_rate"] == metrics["rollout/draw_rate/right"] < 1


def test_a_run_heeds_the_variables_of_mlflow_below_its_own_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, text=CURRICULUM)
    for name, value in {
        "MLFLOW_EXPERIMENT_NAME": "from outside",
        "MLFLOW_RUN_NAME": "walker",
        "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "true",
        "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL": "0.05",
    }.items():
        monkeypatch.setenv(name, value)
    invoke(tmp_path, "run", file, wanted=(0, 1))
    (heeded,) = list_runs(DataFolder(tmp_path))
    assert (heeded.name, heeded.experiment) == ("walker", "from outside")
    assert "system/cpu_utilization_percentage" in heeded.metrics
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")
    named = ("--name", "mine", "--set", "tracking.experiment=own")
    invoke(tmp_path, "run", file, *named, wanted=(0, 1))
    newest = list_runs(DataFolder(tmp_path))[0]
    assert (newest.name, newest.experiment) == ("mine", "own")
    assert not [key for key in newest.metrics if key.startswith("system/")]


def test_an_experiment_of_the_environment_is_checked_and_a_blank_one_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", " ")
    assert TrackingSettings().experiment == "aimbot-lab"
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "x" * 251)
    with pytest.raises(ConfigurationError, match="variable MLFLOW_EXPERIMENT_NAME: must have at"):
        TrackingSettings()
    assert TrackingSettings(experiment="own").experiment == "own"


TOO_MANY = "5,000 rows (episodes or agents at once): world gymnasium takes at most 4,096"


def test_more_episodes_than_the_world_has_rows_for_are_refused_in_a_line(data: Path) -> None:
    assert TOO_MANY in invoke(data, "evaluate", "latest", "--episodes", 5000, wanted=2).said


def test_an_evaluation_of_too_many_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    file = write(tmp_path, text=f"{CURRICULUM}evaluation: {{every: 64, episodes: 5000}}\n")
    assert TOO_MANY in invoke(tmp_path / "data", "run", file, wanted=2).said
    assert list_runs(DataFolder(tmp_path / "data")) == []


EVERYTHING = """
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
    document: Any = train(folder / "data", write(folder, text=EVERYTHING))
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
    file = write(tmp_path, text=EVERYTHING)
    begun = train(data, file, "--init-from", tmp_path / "agent", "--set", "train.total_steps=256")
    assert begun["status"] == "FINISHED"
    broken = invoke(
        data,
        *("run", file, "--init-from", tmp_path / "agent"),
        *("--set", "train.network.memory.size=9"),
        wanted=(1, 2),
    )
    assert len(broken.said.strip().splitlines()) == 1


def test_an_exported_file_is_said_to_choose_act_and_remember_within_so_much() -> None:
    check = OnnxCheck(10_000, 0, 2.34e-6, steps=100, memory_difference=5e-7)
    assert shown_differences(check) == (
        "0 other choices, numbers within 2e-06 of their range, memory at the end within 5e-07"
    )
    assert shown_differences(OnnxCheck(10_000, 0, 0.0)) == "0 other choices"
    apart = "0 other choices, numbers within 3e-05 of their range"
    rounded = f"{apart} (single precision rounds by 2e-05)"
    assert shown_differences(OnnxCheck(10_000, 0, 3e-5, rounding=2e-5)) == rounded
