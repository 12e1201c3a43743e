"""One training on two machines, for which two network namespaces stand in."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shared_project import COMMAND, WAIT_S, Project, document, worker

from aimbot_lab.experiment.runs.checkpoints import CheckpointFolder
from aimbot_lab.tracking.runs.history import list_runs

MEET = "10.77.0.1:29400"
STEPS = "train.total_steps=983040"
PATIENCE = "20"
ROLLOUTS = 10 * 2048  # steps
LONG = "AIMBOT_LAB_LONG_TESTS"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(LONG not in os.environ, reason=f"takes minutes; set {LONG}=1"),
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None,
        reason="network namespaces need Linux, root and iproute2",
    ),
]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class Machine(Project):
    """A folder, a network of its own, and the commands that were begun there."""

    def __init__(self, path: Path, name: str, address: str) -> None:
        path.mkdir()
        super().__init__(path)
        self.name, self.link = f"lab-{name}-{os.getpid()}", f"lab{name}{os.getpid()}"
        self.address = address

    def begin(self, *words: str, command: list[str] = COMMAND) -> "subprocess.Popen[str]":
        inside = ["ip", "netns", "exec", self.name, *command]
        return super().begin(*words, "--patience", PATIENCE, command=inside)

    def together(self, *words: str, machines: str = "1:2") -> "subprocess.Popen[str]":
        """`aimbot-lab` with `words`, as one of several machines."""
        return self.begin(*words, "--machines", machines, "--meet", MEET, "--json")


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    """Two machines; the first one has the meeting point."""
    pair = [
        Machine(tmp_path / name, name, f"10.77.0.{number}/24")
        for number, name in ((1, "a"), (2, "b"))
    ]
    for one in pair:
        ip("netns", "add", one.name)
        ip("-n", one.name, "link", "set", "lo", "up")
    first, second = pair
    ends = ("netns", first.name, "type", "veth", "peer", "name", second.link, "netns", second.name)
    ip("link", "add", first.link, *ends)
    for one in pair:
        ip("-n", one.name, "addr", "add", one.address, "dev", one.link)
        ip("-n", one.name, "link", "set", one.link, "up")
    yield pair
    for one in pair:
        for process in one.begun:
            process.kill()
            process.communicate()
        ip("netns", "delete", one.name)


def wait_for_line(process: "subprocess.Popen[str]", beginning: str) -> str:
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(beginning):
            return line.strip()
    raise AssertionError(f"it said {lines}, never {beginning!r}")


def ended(process: "subprocess.Popen[str]", wanted: int) -> str:
    """The messages of a machine that follows."""
    output, messages = process.communicate(timeout=WAIT_S)
    assert process.returncode == wanted, messages
    assert output == ""
    assert "Traceback" not in messages
    return messages


def newest_step(machine: Machine, run_id: str) -> int:
    return CheckpointFolder(machine.data.runs / run_id / "checkpoints").newest_step or 0


def test_whatever_happens_to_two_machines_the_training_ends_as_on_one(
    tmp_path: Path, machines: list[Machine]
) -> None:
    (tmp_path / "alone").mkdir()
    alone = Project(tmp_path / "alone").ended("run", "tiny.yaml", "--set", STEPS)
    a, b = machines
    words = ("run", "tiny.yaml", "--set", STEPS)
    leader, follower = a.together(*words), b.together(*words)
    run_id, step = a.wait_for_checkpoint()
    worker(follower, 1).kill()
    _, step = a.wait_for_checkpoint(after=step + ROLLOUTS)
    worker(leader, 0).kill()
    a.wait_for_checkpoint(after=step + ROLLOUTS)

    ip("-n", b.name, "link", "set", b.link, "down")
    step = newest_step(a, run_id)
    assert "no machine leads there" in ended(follower, 1).splitlines()[-1]
    a.wait_for_checkpoint(after=step + ROLLOUTS)
    ip("-n", b.name, "link", "set", b.link, "up")
    returned = b.together(*words)
    assert wait_for_line(returned, "joined").endswith("rank 1 of 2")
    a.wait_for_checkpoint(after=newest_step(a, run_id))

    returned.send_signal(signal.SIGINT)
    stopped = document(leader, 130)
    assert ended(returned, 130).splitlines()[-1].endswith("ended with exit code 130")
    assert (stopped["run_id"], stopped["status"]) == (run_id, "KILLED")
    said = stopped["messages"]
    assert "rank 1 was ended by SIGKILL; all begin again (restart 1 of 3)" in said
    assert "rank 0 was ended by SIGKILL; all begin again (restart 1 of 3)" in said
    assert f"has been silent for {PATIENCE} s; all begin again" in said
    assert "neither encrypted nor authenticated" in said

    leader = a.together("resume", run_id, machines="2")
    follower = b.together("resume", "latest", machines="2")
    told = document(leader, 1)
    ended(follower, 1)
    assert (told["run_id"], told["state_sha256"]) == (run_id, alone["state_sha256"])
    assert [run.status for run in list_runs(a.data)] == ["FAILED"]
    assert not list(b.data.root.iterdir()), "the machine that follows keeps nothing"


def test_the_others_end_when_the_machine_that_is_met_is_lost_and_a_resumption_goes_on(
    machines: list[Machine],
) -> None:
    a, b = machines
    few = ("run", "tiny.yaml", "--set", "train.total_steps=327680")
    leader, follower = a.together(*few, machines="2"), b.together(*few, machines="2")
    run_id, step = a.wait_for_checkpoint()
    leader.kill()
    leader.communicate()
    assert "no machine leads there" in ended(follower, 1).splitlines()[-1]
    leader, follower = (one.together(*few, "--resume", machines="2") for one in machines)
    told = document(leader, 1)
    assert told["run_id"] == run_id
    assert told["steps"] == 327_680 > step
    ended(follower, 1)
