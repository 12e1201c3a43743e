"""A project with a tiny curriculum that several processes train, for tests of such trainings."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from aimbot_lab.experiment.runs.run_record import CheckpointFolder
from aimbot_lab.tracking.data_folder import DataFolder, embedded_address
from aimbot_lab.tracking.mlflow_store import connect
from tests.cli.tiny_runs import COMMAND, begin_in, invoke_in

WAIT_S = 240
ROLLOUTS = 10 * 2048  # steps; more than a dead process's checkpoint can be behind
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m", "aimbot_lab"]
CURRICULUM = """
name: tiny
seed: 7
env: {num_envs: 64, goto_win_radius: 12.0, time_limit: 3.0}
lessons:
  - name: first
    targets: {goto: 1}
    difficulty: {goto: [1, 0, 0, 0, 0]}
    completion_criteria: {threshold: 0.01, min_lesson_length: 10}
  - name: second
    targets: {goto: 1}
    difficulty: {goto: [1, 1, 0, 0, 0]}
    completion_criteria: {threshold: 0.999, min_lesson_length: 10}
train:
  algo: hybrid_ppo
  total_steps: 163_840
  n_steps: 32
  batch_size: 1024
  n_epochs: 1
  network: {layers: [16]}
tracking: {experiment: tests}
"""


class Project:
    """A folder with the curriculum, and the commands that were begun there."""

    curriculum, wait_s = CURRICULUM, WAIT_S

    def __init__(self, path: Path, store: Path | None = None) -> None:
        self.path, self.data = path, DataFolder(path / ".aimbot-lab")
        self.begun: list[subprocess.Popen[str]] = []
        (path / "tiny.yaml").write_text(self.curriculum, encoding="utf-8")
        (path / ".aimbot-lab").mkdir()
        if store is not None:  # to make one takes longer than a training
            shutil.copy(store, self.data.database)

    def begin(self, *words: str, command: list[str] = COMMAND) -> "subprocess.Popen[str]":
        process = begin_in(self.path, *words, command=command)
        self.begun.append(process)
        return process

    def ended(self, *words: str, wanted: int = 1, command: list[str] = COMMAND) -> dict[str, Any]:
        """The JSON document of a training; by default one that spends its steps."""
        return self.document(self.begin(*words, "--json", command=command), wanted)

    def document(self, process: "subprocess.Popen[str]", wanted: int) -> dict[str, Any]:
        """The one JSON document of a command that ends with the exit code `wanted`."""
        output, messages = self.said(process)
        assert process.returncode == wanted, messages
        assert "Traceback" not in messages
        told: dict[str, Any] = json.loads(output)
        return {**told, "messages": messages}

    def said(self, process: "subprocess.Popen[str]") -> tuple[str, str]:
        """Its output and its messages, once it has ended."""
        return process.communicate(timeout=self.wait_s)

    def wait_for_checkpoint(self, after: int = 0) -> tuple[str, int]:
        """The one run that trains, once it has a checkpoint after that step, and which step."""
        end, process = time.monotonic() + self.wait_s, self.begun[-1]
        while True:
            over = process.poll() is not None or time.monotonic() > end
            for path in self.data.runs.glob("*/checkpoints"):
                if (step := CheckpointFolder(path).newest_step or 0) > after:
                    return path.parent.name, step
            if over:
                process.kill()
                said = f"exit code {process.poll()}: {self.said(process)}"
                raise AssertionError(f"no checkpoint after step {after}: {said}")
            time.sleep(0.02)

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.begun:
            process.kill()
            process.communicate()


def worker(process: "subprocess.Popen[str]", rank: int) -> psutil.Process:
    children = psutil.Process(process.pid).children(recursive=True)
    (found,) = (one for one in children if one.environ().get("RANK") == str(rank))
    return found


def kept(told: dict[str, Any]) -> dict[str, Any]:
    """What the store has of a run that does not depend on the clock."""
    from mlflow import MlflowClient

    client, run_id = MlflowClient(told["tracking_uri"]), told["run_id"]
    metrics = client.get_run(run_id).data.metrics
    folder = Path(client.download_artifacts(run_id, ""))
    return {
        "state": told["state_sha256"],
        "metrics": {
            name: [(point.step, point.value) for point in client.get_metric_history(run_id, name)]
            for name in metrics
            if not name.startswith("time/")
        },
        **{name: (folder / name).read_bytes() for name in ("episodes.csv", "result.json")},
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = DataFolder(tmp_path_factory.mktemp("store"))
    connect(data, embedded_address(data))
    return data.database


@pytest.fixture
def project(tmp_path: Path, store: Path) -> Iterator[Project]:
    project = Project(tmp_path, store)
    yield project
    project.end()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, store: Path) -> dict[str, Any]:
    folder = Project(tmp_path_factory.mktemp("alone"), store).path
    told: dict[str, Any] = invoke_in(folder, "run", "tiny.yaml", "--json", wanted=1).document
    assert told["lessons"][0]["ended_at_step"] is not None
    return told
