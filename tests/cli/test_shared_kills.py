"""A training of several processes that are killed and stopped ends as an undisturbed one.

Processes strike themselves at chosen places (`struck_program.py`), and their launcher is struck at
any moment. `make kills` sets AIMBOT_LAB_KILLS=4: twenty runs, struck so often each, and one in 2,
1, 3 and 2 processes; it prints the time from each kill to the next checkpoint beside that of a cold
start. Without it, one run is struck once.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from shared_project import WAIT_S, Project, alone, kept, project, store
from struck_program import PLACES, STRIKE, STRUCK

from aimbot_lab.experiment.runs.run_record import CheckpointFolder

__all__ = ["alone", "project", "store"]  # fixtures
PROGRAM = [sys.executable, str(Path(__file__).with_name("struck_program.py"))]
KILLS = int(os.environ.get("AIMBOT_LAB_KILLS", "0"))
RUNS = 20
ROLLOUT = 2048  # steps
LONG = "--set", "train.total_steps=327680"  # longer than any four strikes take


class Strike(NamedTuple):
    rank: int
    place: str
    calls: int
    signal: str

    @classmethod
    def drawn(cls, chance: random.Random, processes: int) -> "Strike":
        """Any, within some three rollouts."""
        place = chance.choice(PLACES)
        rank = 0 if place == "checkpoint" else chance.randrange(processes)
        calls = {"rollout": 96, "minibatch": 6, "gathering": 9, "checkpoint": 3}[place]
        name = chance.choices(["SIGKILL", "SIGSTOP"], [7, 1])[0]  # a silent one is waited for
        return cls(rank, place, chance.randint(1, calls), name)


class StruckRun:
    """A training and what is done to it; `seconds` are from each kill to the next checkpoint."""

    def __init__(self, project: Project, *words: str) -> None:
        self._project = project
        self.seconds: list[float] = []
        self.begin("run", "tiny.yaml", *words, processes=2)
        begun = time.time()
        self.run_id, _ = project.wait_for_checkpoint()
        self.cold_start = self._newest_time() - begun

    def begin(self, *words: str, processes: int) -> None:
        """Start the training, or resume it, in so many processes."""
        several = ["--processes", str(processes)] if processes > 1 else []
        self.processes = processes
        self.process = self._project.begin(*words, *several, "--json", command=PROGRAM)

    @property
    def _folder(self) -> CheckpointFolder:
        return CheckpointFolder(self._project.data.runs / self.run_id / "checkpoints")

    def _newest_time(self) -> float:
        return max(path.stat().st_mtime for path in self._folder.path.glob("step-*"))

    def advances(self, since: float) -> None:
        """Wait for a checkpoint that nobody can have been writing."""
        self._project.wait_for_checkpoint(after=(self._folder.newest_step or 0) + ROLLOUT)
        self.seconds.append(self._newest_time() - since)

    def strike(self, strike: Strike) -> None:
        """Have a process strike itself, and see the training go on."""
        arm(self._project, strike)
        self.survives(strike)

    def survives(self, strike: Strike) -> None:
        """See a process strike itself, and the training go on."""
        struck = self._project.path / STRUCK
        wait_until(lambda: struck.exists() or self.process.poll() is not None, str(strike))
        assert struck.exists(), f"{strike}: {self.process.communicate()}"
        since = struck.stat().st_ctime
        struck.unlink()
        self.advances(since)

    def kill_all(self, processes: int) -> None:
        """Kill the launcher, see all others go, and resume in so many processes."""
        since = time.time()
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not left_in(self._project.path), "orphans")
        self.begin("resume", self.run_id[:12], processes=processes)
        self.advances(since)

    def halt_launcher(self, seconds: float) -> None:
        """Stop the launcher for a while: the others need none of it."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def ended(self) -> dict[str, Any]:
        """The document of the training, once it has spent its steps and nobody is left."""
        told = self._project.document(self.process, 1)
        assert left_in(self._project.path) == []
        assert told["run_id"] == self.run_id
        return told


def arm(project: Project, strike: Strike) -> None:
    """Have a process strike itself, now or later."""
    fresh = project.path / "fresh"
    fresh.write_text(json.dumps(strike))
    fresh.rename(project.path / STRIKE)


def left_in(folder: Path) -> list[int]:
    """Processes that work in `folder`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder):
                found.append(process.pid)
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def wait_until(done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def same(told: dict[str, Any], alone: dict[str, Any]) -> None:
    assert told["state_sha256"] == alone["state_sha256"]
    assert kept(told) == kept(alone)


@pytest.fixture(scope="module")
def long_alone(tmp_path_factory: pytest.TempPathFactory, store: Path) -> dict[str, Any]:
    return Project(tmp_path_factory.mktemp("alone"), store).ended("run", "tiny.yaml", *LONG)


@pytest.mark.campaign
def test_a_leader_that_hangs_with_a_checkpoint_half_written_changes_nothing(
    project: Project, alone: dict[str, Any]
) -> None:
    strike = Strike(0, "checkpoint", 3, "SIGSTOP")
    arm(project, strike)
    run = StruckRun(project)
    run.survives(strike)
    same(run.ended(), alone)


@pytest.mark.campaign
def test_in_two_one_three_and_two_processes_a_run_ends_in_the_same_bits(
    project: Project, long_alone: dict[str, Any]
) -> None:
    run = StruckRun(project, *LONG)
    for processes in (1, 3, 2):
        run.kill_all(processes)
    same(run.ended(), long_alone)


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(RUNS if KILLS else 1))
def test_strikes_at_random_moments_change_nothing(
    project: Project, long_alone: dict[str, Any], number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, worlds = random.Random(number), cycle((3, 2))
    run, done = StruckRun(project, *LONG), []
    for _ in range(KILLS):
        kind = chance.choices(["process", "launcher killed", "launcher halted"], [6, 2, 1])[0]
        if kind == "process":
            strike = Strike.drawn(chance, run.processes)
            run.strike(strike)
            kind = str(strike)
        elif kind == "launcher killed":
            time.sleep(chance.uniform(0.0, 0.3))  # any moment of a rollout or checkpoint
            run.kill_all(next(worlds))
        else:
            run.halt_launcher(chance.uniform(0.0, 0.3))
        done.append(kind)
    same(run.ended(), long_alone)
    with capsys.disabled():
        sys.stdout.write(
            f"\nrun {number}: {'; '.join(done)}: cold start {run.cold_start:.1f} s, kill to "
            f"checkpoint {', '.join(f'{one:.1f}' for one in run.seconds)} s\n"
        )
