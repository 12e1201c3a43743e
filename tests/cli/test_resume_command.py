"""`aimbot-lab resume` and `run --resume` as a user calls them."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import begin_in, invoke_in

from aimbot_lab.cli.stopping import STOPPING
from aimbot_lab.experiment.runs.run_record import resumable_runs
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact, list_runs

CURRICULUM = """
name: tiny
seed: 7
env: {num_envs: 32, goto_win_radius: 12.0, time_limit: 5.0}
lessons:
  - name: only
    targets: {goto: 1}
    completion_criteria: {threshold: 0.999, min_lesson_length: 10}
train:
  total_steps: 4_096
  n_steps: 32
  batch_size: 512
  n_epochs: 2
  network: {layers: [16]}
  torch_threads: 1
"""
ROLLOUT = 32 * 32  # steps of the first one, which a run that is stopped in it begins anew


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_project(tmp_path_factory.mktemp("project"))


def new_project(folder: Path) -> Path:
    (folder / "tiny.yaml").write_text(CURRICULUM, encoding="utf-8")
    (folder / ".aimbot-lab").mkdir()
    return folder


def broken_off(folder: Path, number: int, *arguments: str) -> tuple[int, str, str]:
    """What a training leaves that got a signal in its midst."""
    process = begin_in(folder, *arguments)
    assert process.stderr is not None
    for line in process.stderr:
        step = re.search(r"step ([\d,]+) of .* steps/s", line)
        if step is not None and int(step[1].replace(",", "")) > ROLLOUT:
            break
    process.send_signal(number)
    output, messages = process.communicate(timeout=240)
    assert "Traceback" not in messages
    return process.returncode, output, messages


def data_folder(folder: Path) -> DataFolder:
    return DataFolder(folder / ".aimbot-lab")


def status(folder: Path, run_id: str) -> str:
    (found,) = (run for run in list_runs(data_folder(folder)) if run.run_id == run_id)
    return found.status


@pytest.fixture(scope="module")
def unbroken(folder: Path) -> dict[str, Any]:
    """The JSON document of a run that had all its steps; there was none to go on with."""
    told = invoke_in(folder, "run", "tiny.yaml", "--resume", "--json", wanted=1)
    assert "there is no unfinished run of tiny.yaml: a new one begins" in told.said
    document: dict[str, Any] = told.document
    way = f"resume {document['run_id'][:12]} --set train.total_steps={2 * document['steps']}"
    assert way in told.said
    return document


LONG = "train.total_steps=500000000"


def test_a_killed_run_is_resumed_by_its_file_and_once_stopped_ends_as_the_unbroken_one(
    folder: Path, unbroken: dict[str, Any]
) -> None:
    arguments = ("run", "tiny.yaml", "--seed", "8", "--set", LONG, "--resume", "--json")
    code, _, _ = broken_off(folder, signal.SIGKILL, *arguments)
    assert code == -signal.SIGKILL
    assert "resumes it" in invoke_in(folder, "runs").said
    (killed,) = (run for run in resumable_runs(data_folder(folder)) if not run.record.spent_steps)
    told = invoke_in(folder, *arguments, "--set", "train.gamma=0.5", wanted=2)
    assert told.output == ""
    assert "train.gamma: was 0.99, is 0.5" in told.said
    code, output, messages = broken_off(folder, signal.SIGTERM, *arguments)
    document = json.loads(output)
    assert (code, document["status"]) == (130, "KILLED")
    assert document["run_id"] == killed.run_id
    assert 0 < document["resumes_at"] <= document["steps"]
    assert STOPPING in messages
    assert "Look at it: " in messages
    assert status(folder, killed.run_id) == "KILLED"
    saved = download_artifact(data_folder(folder), killed.run_id, name="agent/last")
    assert (saved / "agent.safetensors").is_file()
    way = next(line for line in messages.splitlines() if line.startswith("To resume it: "))
    assert way.endswith(f"resume {killed.run_id[:12]}")
    # More steps than can be made before a signal; how many it is to be is known after it.
    steps = ("--set", f"train.total_steps={document['steps'] + 4096}", "--json")
    told = invoke_in(folder, *way[way.rindex("resume") :].split(), *steps, wanted=1)
    resumed = told.document
    assert f"resuming run {killed.run_id[:12]} (tiny)" in told.said
    assert f"resuming run {killed.run_id} from step " in told.said
    assert resumed["run_id"] == killed.run_id
    again = invoke_in(folder, "run", "tiny.yaml", "--seed", "8", *steps, wanted=1).document
    for key in ("steps", "state_sha256", "lessons", "cells"):
        assert resumed[key] == again[key]
    assert status(folder, killed.run_id) == "FAILED"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["zz"], "no such run; aimbot-lab runs lists them"),
        (["RUN", "--set", "train.gamma=0.5"], "train.gamma: was 0.99, is 0.5"),
    ],
)
def test_a_mistake_is_told_in_a_line_and_changes_nothing(
    folder: Path, unbroken: dict[str, Any], arguments: list[str], wanted: str
) -> None:
    given = [unbroken["run_id"] if argument == "RUN" else argument for argument in arguments]
    before = status(folder, unbroken["run_id"])
    told = invoke_in(folder, "resume", *given, wanted=2)
    assert told.output == ""
    assert wanted in told.said
    assert status(folder, unbroken["run_id"]) == before
