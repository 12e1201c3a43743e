"""`--processes N`: one training in several processes ends as it does in one, whatever happens."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from shared_project import (
    ROLLOUTS,
    TORCHRUN,
    WAIT_S,
    Project,
    alone,
    kept,
    project,
    store,
    worker,
)
from tiny_runs import invoke_in, invoke_plainly

from aimbot_lab.tracking.history import list_runs

__all__ = ["alone", "project", "store"]  # fixtures
CURRICULA = Path(__file__).parents[2] / "curricula"


def refused(project: Project, *words: str) -> str:
    """The one line that refuses to run the project's curriculum; nothing is made."""
    told = invoke_plainly(
        *("run", project.path / "tiny.yaml", "--data-dir", project.data.root), *words, wanted=2
    )
    assert len(told.said.strip().splitlines()) == 1
    assert not list(project.data.root.iterdir())
    return str(told.said)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--processes", "5"], "there are only 4 shards"),
        (["--processes", "2", "--set", "train.algo=ppo"], "only hybrid_ppo with its fused engine"),
        (["--processes", "2", "--seeds", "2"], "--seeds can't be used"),
        (["--processes", "2:4"], "--processes 2:4: MIN:MAX needs --on ray"),
    ],
)
def test_what_cant_be_shared_is_refused_before_anything_is_made(
    tmp_path: Path, words: list[str], wanted: str
) -> None:
    assert wanted in refused(Project(tmp_path), *words)


@pytest.mark.parametrize(("name", "what"), [("cartpole", "world gymnasium"), ("duel", "self_play")])
def test_a_world_without_parts_and_self_play_are_refused(
    tmp_path: Path, name: str, what: str
) -> None:
    project = Project(tmp_path)
    shipped = (CURRICULA / f"{name}.yaml").read_text("utf-8")
    (tmp_path / "tiny.yaml").write_text(shipped, encoding="utf-8")
    words = ("--set", "train.algo=hybrid_ppo", "--processes", "2")
    assert f"{what} can't be shared out" in refused(project, *words)


def test_one_of_several_starts_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    file = Project(tmp_path).path / "tiny.yaml"
    told = invoke_plainly("run", file, "--processes", "2", wanted=2)
    assert "--processes can't be used in one of several processes" in told.said


def test_two_processes_end_as_one_does(project: Project, store: Path, tmp_path: Path) -> None:
    few = ("run", "tiny.yaml", "--set", "train.total_steps=8192")
    (tmp_path / "alone").mkdir()
    one = invoke_in(Project(tmp_path / "alone", store).path, *few, "--json", wanted=1).document
    two = project.ended(*few, "--processes", "2")
    assert two["state_sha256"] == one["state_sha256"]
    assert kept(two) == kept(one)
    assert len(list_runs(project.data)) == 1
    assert two["messages"].count("training\n") == 1


@pytest.mark.campaign
def test_a_training_that_is_killed_and_stopped_ends_as_an_undisturbed_one(
    project: Project, alone: dict[str, Any]
) -> None:
    process = project.begin("run", "tiny.yaml", "--processes", "2", "--json")
    run_id, step = project.wait_for_checkpoint()
    worker(process, 1).kill()
    project.wait_for_checkpoint(after=step + ROLLOUTS)
    process.send_signal(signal.SIGINT)
    stopped = project.document(process, 130)
    assert "rank 1 was ended by SIGKILL; all restart (restart 1 of 3)" in stopped["messages"]
    assert (stopped["run_id"], stopped["status"]) == (run_id, "KILLED")
    assert stopped["resumes_at"] == stopped["steps"] > step
    told = invoke_in(project.path, "resume", run_id[:12], "--json", wanted=1).document
    assert (told["run_id"], told["state_sha256"]) == (run_id, alone["state_sha256"])
    assert kept(told) == kept(alone)


@pytest.mark.campaign
def test_torchrun_starts_them_too(project: Project, alone: dict[str, Any]) -> None:
    few = "train.total_steps=8192"  # passes no lesson more than the first
    told = project.ended("run", "tiny.yaml", "--set", few)
    process = project.begin("run", "tiny.yaml", "--set", few, "--json", command=TORCHRUN)
    output, messages = process.communicate(timeout=WAIT_S)
    shared = json.loads(output)
    assert shared["state_sha256"] == told["state_sha256"] != alone["state_sha256"]
    assert messages.count("saving\n") == 1


@pytest.mark.campaign
def test_processes_of_other_curricula_are_refused(project: Project) -> None:
    one = "--set train.total_steps=4096$RANK"
    command = [*TORCHRUN[:-2], "--no-python", "bash", "-c"]
    line = f"{sys.executable} -m aimbot_lab run tiny.yaml {one}"
    process = project.begin(line, command=command)
    _, messages = process.communicate(timeout=WAIT_S)
    assert process.returncode
    said = [line for line in messages.splitlines() if line.startswith("process 1 has another")]
    assert said == [messages[messages.index("process 1") :].splitlines()[0]]
    assert "curriculum than process 0" in said[0]
    assert not list_runs(project.data)
