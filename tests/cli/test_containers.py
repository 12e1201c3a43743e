"""Runs seen from other containers of the machine: other host names, other pid namespaces."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tiny_runs import COMMAND, begin_in

IN_BACKGROUND = ("nice", "-n", "15")  # of an endless training, beside commands that are waited for
CURRICULUM = """
name: endless
env: {num_envs: 32, goto_win_radius: 12.0, time_limit: 0.5}
lessons:
  - name: only
    targets: {goto: 1}
    completion_criteria: {threshold: 0.999, min_lesson_length: 10}
train:
  total_steps: 1_000_000_000
  n_steps: 32
  batch_size: 512
  n_epochs: 1
  network: {layers: [8]}
"""
UNSHARE = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"])]
OTHER_PIDS = [*UNSHARE, "--pid", "--fork", "--mount-proc", "--kill-child"]
OTHER_HOST = [*UNSHARE, "--uts", "sh", "-c", 'hostname other; exec "$@"', "sh"]


def may_unshare() -> bool:
    """Whether this system lets its tests make namespaces."""
    try:
        made = [subprocess.run([*way, "true"], check=False) for way in (OTHER_PIDS, OTHER_HOST)]
    except OSError:
        return False
    return all(one.returncode == 0 for one in made)


pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(not may_unshare(), reason="the system forbids unshare"),
]


def begin(folder: Path, *arguments: str, inside: Sequence[str] = ()) -> "subprocess.Popen[str]":
    return begin_in(folder, *arguments, command=[*inside, *COMMAND])


def call(folder: Path, *arguments: str, inside: Sequence[str] = ()) -> tuple[int, str, str]:
    process = begin(folder, *arguments, inside=inside)
    output, messages = process.communicate(timeout=240)
    assert "Traceback" not in messages
    return process.returncode, output, messages


def wait_until_it_trains(process: subprocess.Popen[str]) -> str:
    """What it said until it had trained for a while."""
    said = ""
    assert process.stderr is not None
    for line in process.stderr:
        said += line
        if "steps/s" in line:
            return said
    raise AssertionError(said)


def status(folder: Path) -> str:
    (run,) = json.loads(call(folder, "runs", "--json")[1])
    return str(run["status"])


def test_a_run_has_one_trainer_however_many_containers_look_at_it(tmp_path: Path) -> None:
    (tmp_path / "endless.yaml").write_text(CURRICULUM, encoding="utf-8")
    (tmp_path / ".aimbot-lab").mkdir()
    first = begin(tmp_path, "run", "endless.yaml", inside=IN_BACKGROUND)
    others = [first]
    try:
        wait_until_it_trains(first)
        # From another pid namespace with the same host name it is seen to live.
        code, output, messages = call(tmp_path, "runs", "--json", inside=OTHER_PIDS)
        assert (code, "closed the run" in messages) == (0, False)
        (run,) = json.loads(output)
        run_id, was = run["run_id"], run["status"]
        assert was == "RUNNING"
        code, _, messages = call(tmp_path, "resume", run_id, inside=OTHER_PIDS)
        assert code == 2
        assert f"run {run_id} is still trained by process" in messages
        assert f"aimbot-lab resume {run_id} --take-over" in messages
        # Who takes it over has it alone: the first trainer notices, and writes no more.
        second = begin(
            tmp_path, "resume", run_id, "--take-over", inside=[*IN_BACKGROUND, *OTHER_HOST]
        )
        others.append(second)
        assert f"resuming run {run_id} from step" in wait_until_it_trains(second)
        _, messages = first.communicate(timeout=240)
        assert first.returncode == 1
        assert f"run {run_id} was taken over by process" in messages.splitlines()[-1]
        assert status(tmp_path) == "RUNNING"
        # A container that died is succeeded at once, under whatever host name.
        second.send_signal(signal.SIGKILL)
        second.communicate(timeout=240)
        third = begin(tmp_path, "resume", run_id, inside=[*IN_BACKGROUND, *OTHER_PIDS])
        others.append(third)
        assert f"resuming run {run_id} from step" in wait_until_it_trains(third)
        assert status(tmp_path) == "RUNNING"
        third.send_signal(signal.SIGKILL)
        third.communicate(timeout=240)
        assert status(tmp_path) == "KILLED"
    finally:
        for process in others:
            process.kill()
            process.communicate()
