"""Draws are tracked while an agent trains, and shown where it is evaluated."""

import re
from pathlib import Path

import pytest
from tiny_runs import invoke, train, write

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import find_run
from tests.installed import install

CURRICULUM = """
name: race
env: {world: walk, num_envs: 4, agents: 2}
lessons: [{name: right, completion_criteria: {threshold: 0.99}}]
train: {algo: ppo, total_steps: 1024, n_steps: 32, batch_size: 64, network: {layers: [4]}}
"""


def test_draws_are_metrics_of_a_run_and_columns_of_its_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "worlds", "walk", "tests.worlds.stranger:WALK")
    done = train(tmp_path, write(tmp_path, text=CURRICULUM))
    output = invoke(tmp_path, "evaluate", "latest", "--episodes", 40).output
    head, first, *_ = output.splitlines()
    assert re.split(r"\s{2,}", head.strip())[-4:] == [
        "wins",
        "draws",
        "median to win",
        "return [95 %]",
    ]
    found = invoke(tmp_path, "evaluate", "latest", "--episodes", 40, "--json").document
    overall = found["players"]["sampled"]["overall"]
    assert overall["wins"] + overall["draws"] <= overall["episodes"] == 40
    assert overall["draws"] > 0
    columns = re.split(r"\s{2,}", first.strip())
    assert columns[-4:-2] == [f"{overall['wins']} of 40", str(overall["draws"])]
    metrics = find_run(DataFolder(tmp_path), done["run_id"]).metrics
    assert metrics["test/draw_rate"] == metrics["test/draw_rate/right"] == overall["draws"] / 40
    assert 0 < metrics["rollout/draw_rate"] == metrics["rollout/draw_rate/right"] < 1


def test_a_world_without_draws_has_no_column_of_them(tmp_path: Path) -> None:
    train(tmp_path, write(tmp_path), "--set", "train.total_steps=512")
    output = invoke(tmp_path, "evaluate", "latest", "--episodes", 4, "--no-baselines").output
    assert "draws" not in output.splitlines()[0]
