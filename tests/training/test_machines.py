"""Launchers of several machines, here with one address: who leads, and what ends or mends what."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.processes.machines.meeting_point import find_meeting_point
from aimbot_lab.training.processes.meeting import loopback_interface

PROGRAM = Path(__file__).with_name("machine_program.py")
WAIT_S = 90
LONG = "AIMBOT_LAB_LONG_TESTS"
long = pytest.mark.skipif(LONG not in os.environ, reason=f"takes long; set {LONG}=1")


class Note(NamedTuple):
    """What a worker noted."""

    word: str
    machine: str
    place: str  # rank/world
    pid: int
    interface: str


class Stage:
    """A folder where workers note what they do, and the launchers that were begun."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.begun: list[subprocess.Popen[str]] = []

    def begin(
        self, name: str, machines: str = "2:2", patience: float = 60, seed: int = 1
    ) -> "subprocess.Popen[str]":
        words = [self.folder, name, machines, self.port, patience, seed]
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.begun.append(process)
        return process

    def lead(self, *words: str, **more: float) -> "subprocess.Popen[str]":
        """A launcher that surely is the first one at the port."""
        process = self.begin("a", *words, **more)
        self.wait(self._listens)
        return process

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def notes(self, word: str = "start") -> list[Note]:
        path = self.folder / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        noted = [Note(a, b, c, int(d), e) for a, b, c, d, e in map(str.split, lines)]
        return [one for one in noted if one.word == word]

    def starts(self, number: int) -> list[Note]:
        """The newest workers, once so many have begun."""
        self.wait(lambda: len(self.notes()) >= number)
        return self.notes()

    def starts_with_checkpoints(self, number: int) -> list[Note]:
        """The same, while one checkpoint comes after the other."""

        def begun() -> bool:
            self.make(f"checkpoint {time.monotonic()}")
            return len(self.notes()) >= number

        self.wait(begun)
        return self.notes()

    def wait(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + WAIT_S
        while not done():
            for process in self.begun:
                assert process.poll() is None or done(), process.communicate()[1]
            assert time.monotonic() < end
            time.sleep(0.05)

    def make(self, name: str) -> None:
        (self.folder / name).touch()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    stage = Stage(tmp_path, port)
    yield stage
    for process in stage.begun:
        process.kill()
        process.communicate()


def ended(process: "subprocess.Popen[str]", wanted: int) -> list[str]:
    """The lines of standard error of a launcher that ends with this code."""
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == wanted, err
    assert out == ""
    return err.splitlines()


def places(notes: list[Note]) -> list[tuple[str, str]]:
    return sorted((one.machine, one.place) for one in notes)


def test_losses_are_mended_and_the_machine_that_listens_leads(stage: Stage) -> None:
    leader = stage.lead()
    follower = stage.begin("b")
    first = stage.starts(2)
    assert places(first) == [("a", "0/2"), ("b", "1/2")]
    assert {one.interface for one in first} == {loopback_interface()}
    os.kill(next(one.pid for one in first if one.machine == "b"), signal.SIGKILL)
    second = stage.starts(4)[2:]
    assert places(second) == places(first)
    stage.make("checkpoint 1")
    os.kill(next(one.pid for one in second if one.machine == "a"), signal.SIGKILL)
    assert places(stage.starts(6)[4:]) == places(first)
    stage.make("done")
    assert ended(leader, 0)[-2:] == [
        "rank 1 was ended by SIGKILL; all begin again (restart 1 of 3)",
        "rank 0 was ended by SIGKILL; all begin again (restart 1 of 3)",
    ]
    where = f"the training at 127.0.0.1:{stage.port}"
    assert ended(follower, 0) == [f"joined {where}, rank 1 of 2", f"{where} ended with exit code 0"]


def test_a_stop_asked_for_on_any_machine_stops_all_once(stage: Stage) -> None:
    leader = stage.lead()
    follower = stage.begin("b")
    stage.starts(2)
    follower.send_signal(signal.SIGINT)
    assert ended(follower, 130)[-1].endswith("ended with exit code 130")
    ended(leader, 130)
    assert places(stage.notes("stopped")) == [("a", "0/2"), ("b", "1/2")]


def test_an_error_on_one_machine_ends_all_and_the_leader_says_it(stage: Stage) -> None:
    leader = stage.lead()
    follower = stage.begin("b")
    stage.starts(2)
    stage.make("fail b")
    stage.make("lost a")  # which notices it
    assert ended(leader, 3)[-1] == "rank 1 ended with exit code 3: MemoryError: 3 GB"
    assert ended(follower, 3)[-1].endswith("ended with exit code 3")
    assert len(stage.notes()) == 2, "an error is not tried again"


@long
def test_a_machine_that_comes_late_vanishes_and_returns_is_taken_in(stage: Stage) -> None:
    leader = stage.lead("1:2", patience=3)
    assert places(stage.starts(1)) == [("a", "0/1")]
    follower = stage.begin("b", "1:2", patience=3)
    assert follower.stderr is not None
    line = "waiting: the training has 1 machine, and takes this one in at its next checkpoint"
    assert follower.stderr.readline().strip() == line
    assert len(stage.notes()) == 1
    assert places(stage.starts_with_checkpoints(3)[1:]) == [("a", "0/2"), ("b", "1/2")]
    follower.kill()  # the kernel ends its worker
    stage.begun.remove(follower)
    follower.communicate()
    assert places(stage.starts(4)[3:]) == [("a", "0/1")]
    stage.begin("b", "1:2", patience=3)
    assert places(stage.starts_with_checkpoints(6)[4:]) == [("a", "0/2"), ("b", "1/2")]
    stage.make("done")
    lines = [line for line in ended(leader, 0) if line.startswith("machine")]
    joins = "joins; all go on from the newest checkpoint"
    silent = "has been silent for 3 s; all begin again (restart 1 of 3)"
    assert [line.partition(") ")[2] for line in lines] == [joins, silent, joins]


@long
def test_others_end_after_the_patience_once_the_leader_is_lost(stage: Stage) -> None:
    leader = stage.lead()
    follower = stage.begin("b", patience=3)
    stage.starts(2)
    leader.kill()
    leader.communicate()
    stage.begun.remove(leader)
    assert "no machine leads there (Connection refused)" in ended(follower, 1)[-1]


def test_a_leader_begins_with_enough_machines_or_not_at_all(stage: Stage) -> None:
    lines = ended(stage.lead(patience=1), 1)
    assert lines == [
        "waiting for 1 more machine",
        "1 of at least 2 machines are there after 1 s (--patience)",
    ]
    assert stage.notes() == []


def test_machines_that_are_told_something_else_end_all_before_anything_begins(stage: Stage) -> None:
    leader = stage.lead()
    follower = stage.begin("b", seed=2)
    fault = "has another seed than the one that leads: 2, not 1; all must be given the same"
    assert fault in ended(leader, 2)[-1]
    assert ended(follower, 2) == [f"--meet 127.0.0.1:{stage.port}: this machine {fault}"]
    assert stage.notes() == []


def test_a_port_in_use_by_another_program_is_one_line(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", stage.port)):
        (line,) = ended(stage.begin("a"), 2)
    assert f"port {stage.port} is in use by another program" in line


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("db", "must be HOST:PORT"),
        ("db:0", "must be HOST:PORT"),
        ("db:65536", "must be HOST:PORT"),
        ("[::1]:29400", "must be HOST:PORT"),
        (":29400", "must be HOST:PORT"),
        ("no-such-host.invalid:29400", "no-such-host.invalid has no IPv4 address here"),
        ("0.0.0.0:29400", "no machine's address"),
        ("224.0.0.1:29400", "no machine's address"),
    ],
)
def test_a_meeting_point_that_leads_nowhere_is_refused(text: str, wanted: str) -> None:
    with pytest.raises(ConfigurationError, match=wanted):
        find_meeting_point(text)


def test_a_name_that_others_would_not_find_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.1.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
    with pytest.raises(ConfigurationError, match=r"db is 127\.0\.1\.1 here, which no other"):
        find_meeting_point("db:29400")
