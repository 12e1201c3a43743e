"""`weights` and `explain` on a run that trains, is killed, and is over."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import environment, invoke_in

PACED = Path(__file__).with_name("paced_lab.py")
CURRICULUM = """
name: endless
env: {num_envs: 32, goto_win_radius: 12.0, time_limit: 5.0}
lessons:
  - name: first
    targets: {goto: 1}
    difficulty: {goto: [1, 0, 0, 0, 0]}
    completion_criteria: {threshold: 0.02, min_lesson_length: 10}
  - name: second
    targets: {goto: 1}
    difficulty: {goto: [1, 1, 0, 0, 0]}
    completion_criteria: {threshold: 0.999, min_lesson_length: 10}
train:
  total_steps: 1_000_000_000
  n_steps: 32
  batch_size: 512
  n_epochs: 1
  network: {layers: [8]}
"""


def document(folder: Path, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = invoke_in(folder, *arguments, "--json").document
    return found


def refused(folder: Path, *arguments: str) -> str:
    """The one line that refuses it."""
    (line,) = invoke_in(folder, *arguments, wanted=2).said.splitlines()
    return str(line)


def in_second_lesson(folder: Path) -> str | None:
    """The id of the run, once it is in its second lesson."""
    for events in (folder / ".aimbot-lab" / "runs").glob("*/growing/events.jsonl/events.jsonl"):
        if b'"promote"' in events.read_bytes():
            return events.parents[2].name
    return None


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, Any]]:
    """A project, its run and the run's process."""
    folder = tmp_path_factory.mktemp("project")
    (folder / ".aimbot-lab").mkdir()
    (folder / "endless.yaml").write_text(CURRICULUM, encoding="utf-8")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, PACED, "run", "endless.yaml"]
    process = subprocess.Popen(command, cwd=folder, env=environment(), **quiet)
    try:
        for _ in range(6000):  # ten minutes, where the machine is busy
            if (run_id := in_second_lesson(folder)) is not None:
                break
            assert process.poll() is None
            time.sleep(0.1)
        assert run_id is not None
        yield folder, run_id, process
    finally:
        process.kill()
        process.wait()


def test_weights_change_a_run_and_are_told_of_after_its_death(
    running: tuple[Path, str, Any],
) -> None:
    folder, run_id, process = running
    shown = document(folder, "weights", run_id[:6], "goto")
    assert shown["weights"] == [0.5, 0.5, 0.0, 0.0, 0.0]
    changed = document(folder, "weights", run_id, "goto", "3=0.4", "--lock", "1")
    assert changed["weights"] == pytest.approx([0.5, 0.1, 0.4, 0.0, 0.0])
    assert changed["locked"] == [True, False, False, False, False]
    assert changed["lesson"] == 2
    said = refused(folder, "weights", run_id, "goto", "1=0.2")
    assert said == "difficulty 1: its weight is locked"

    live = document(folder, "explain", run_id)
    assert [lesson["end"] is not None for lesson in live["lessons"]] == [True, False]
    process.send_signal(signal.SIGKILL)
    process.wait()
    told = document(folder, "explain", run_id, "--threshold", "0.5")
    first, second = told["lessons"]
    assert first["agrees"]
    assert second["agrees"]
    assert first["end"]["decision"] == "promote"
    assert first["checks"][-1]["step"] == first["end"]["step"]
    (event,) = second["events"]
    assert event["weights"] == changed["weights"]
    assert event["step"] == changed["step"]
    assert second["episodes"] >= live["lessons"][1]["episodes"]
    assert second["what_if"]["threshold"] == 0.5
    text = invoke_in(folder, "explain", run_id).output
    assert "lesson 1 'first': passed at step" in text
    assert "difficulty weights of goto moved to 0.5 0.1 0.4 0 0" in text
    assert "held back by" in text

    said = refused(folder, "weights", run_id, "goto")
    assert said == f"{run_id!r}: no such run is running here (running: none)"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("weights", "x", "goto", "3"), "'3' is not of the form LEVEL=WEIGHT, such as 3=0.5"),
        (("explain", "x", "--threshold", "nan"), "must be a number"),
    ],
)
def test_a_wrong_request_is_one_line(
    running: tuple[Path, str, Any], arguments: tuple[str, ...], fault: str
) -> None:
    assert fault in refused(running[0], *arguments)


def test_a_threshold_that_no_lesson_takes_is_refused(running: tuple[Path, str, Any]) -> None:
    said = refused(running[0], "explain", running[1], "--threshold", "1")
    assert said == "--threshold 1: threshold must be less than 1.0 (got 1.0)"
