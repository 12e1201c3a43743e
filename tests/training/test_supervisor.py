"""Several processes of one training begin and end together, whatever ends them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from aimbot_lab.training.processes.exchange import LostError
from aimbot_lab.training.processes.supervisor import (
    MAX_RESTARTS,
    STOPPED,
    ProcessEnd,
    Restarts,
    Verdict,
    judged,
)

PROGRAM = Path(__file__).with_name("supervised_program.py")
ROOT = PROGRAM.parents[2]
WAIT_S = 300

Launch = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launch]:
    """Start a supervisor of two workers of a kind; what is left of them is killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(kind: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, PROGRAM, tmp_path, kind, "2"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pid in pids(tmp_path):
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def notes(folder: Path, word: str, *, column: int = 1) -> list[str]:
    """What workers noted: the ranks, in order."""
    path = folder / "notes"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split()[column] for line in lines if line.split()[0] == word]


def pids(folder: Path) -> list[int]:
    return [*map(int, notes(folder, "start", column=2))]


def ended(process: "subprocess.Popen[str]", code: int, *, err: str = "") -> str:
    """What `process` has written once it has ended as it should."""
    out, told = process.communicate(timeout=WAIT_S)
    assert (process.returncode, told) == (code, err)
    return out


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_all_end_well_and_only_rank_0_is_heard(launched: Launch, tmp_path: Path) -> None:
    out = ended(launched("end"), 0)
    assert out == f"rank 0 of 2, red {[str(tmp_path), 'end']}\na warning\n"
    assert sorted(notes(tmp_path, "start")) == ["0", "1"]


def test_each_finds_its_place_as_under_torchrun_and_each_beginning_has_its_port(
    launched: Launch, tmp_path: Path
) -> None:
    process = launched("tell where")
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, err
    lines = (tmp_path / "places").read_text().splitlines()
    first, second = ([*map(str.split, sorted(life))] for life in (lines[:2], lines[2:]))
    for life in first, second:
        assert [one[:-1] for one in life] == [
            [rank, rank, "2", "2", "127.0.0.1"] for rank in ("0", "1")
        ]
        assert life[0][-1] == life[1][-1]
    assert first[0][-1] != second[0][-1]


@pytest.mark.campaign
def test_workers_that_begin_again_find_each_other(launched: Launch, tmp_path: Path) -> None:
    told = "rank 1 was ended by SIGKILL; all restart (restart 1 of 3)\n"
    assert ended(launched("meet again"), 0, err=told) == "rank 0rank 1\n"


@pytest.mark.parametrize(("kind", "wanted"), [("stop first", 130), ("stay", 0)])
def test_what_becomes_of_a_follower_changes_nothing_once_rank_0_has_ended(
    launched: Launch, tmp_path: Path, kind: str, wanted: int
) -> None:
    ended(launched(kind), wanted)
    assert sorted(notes(tmp_path, "start")) == ["0", "1"]
    assert not any(map(is_alive, pids(tmp_path)))


def test_a_stop_request_comes_once_and_is_waited_for(launched: Launch, tmp_path: Path) -> None:
    process = launched("be stopped")
    wait_until(lambda: len(notes(tmp_path, "ready")) == 2)
    process.send_signal(signal.SIGINT)
    ended(process, 130)
    assert sorted(notes(tmp_path, "signal")) == ["0", "1"]
    assert notes(tmp_path, "saved") == ["1", "0"], "who is done first does not end the other"
    assert len(notes(tmp_path, "start")) == 2


def test_a_second_stop_request_kills_all(launched: Launch, tmp_path: Path) -> None:
    process = launched("ignore stop")
    wait_until(lambda: len(notes(tmp_path, "ready")) == 2)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: len(notes(tmp_path, "signal")) == 2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    ended(process, 130)
    assert not any(map(is_alive, pids(tmp_path)))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ties processes on Linux alone")
def test_a_killed_supervisor_leaves_no_worker(launched: Launch, tmp_path: Path) -> None:
    process = launched("ignore stop")
    wait_until(lambda: len(notes(tmp_path, "ready")) == 2)
    assert all(map(is_alive, pids(tmp_path)))
    process.kill()
    wait_until(lambda: not any(map(is_alive, pids(tmp_path))))


WELL = [ProcessEnd(rank, 0, "") for rank in range(3)]
KILLED = ProcessEnd(1, -signal.SIGKILL, "rank 1 was ended by SIGKILL")
FAILED = ProcessEnd(1, 1, "rank 1 failed")
NOTICED = ProcessEnd(0, LostError.exit_code, "rank 0 ended with exit code 75")
REFUSED = [ProcessEnd(rank, 2, f"rank {rank}: no such key") for rank in range(2)]
SAVED, OVER = ProcessEnd(0, STOPPED, ""), ProcessEnd(0, 0, "")


@pytest.mark.parametrize(
    ("ends", "stopping", "verdict"),
    [
        (WELL, False, Verdict(0)),
        # The cause of a loss is the signal and not who noticed it.
        ([NOTICED, KILLED], False, Verdict(None, loss=KILLED)),
        # An error that all meet ends the run with its code and is told once.
        (REFUSED, False, Verdict(2)),
        (REFUSED[::-1], False, Verdict(2)),
        ([NOTICED, REFUSED[1]], False, Verdict(2, error=REFUSED[1].cause)),
        # Once the leader has ended well the others change nothing.
        *(
            ([other, leader], False, Verdict(leader.code))
            for other in (KILLED, FAILED)
            for leader in (OVER, SAVED)
        ),
        # Who was asked to stop is not begun again.
        ([SAVED, KILLED], True, Verdict(STOPPED)),
        ([SAVED], True, Verdict(STOPPED)),
        (WELL, True, Verdict(0)),
    ],
)
def test_what_the_ends_of_processes_mean(
    ends: list[ProcessEnd], stopping: bool, verdict: Verdict
) -> None:
    assert judged(ends, stopping=stopping) == verdict


def test_losses_are_mended_three_times_after_each_checkpoint() -> None:
    assert judged([*REFUSED, KILLED], stopping=False).loss is None
    restarts = Restarts(lambda: 7)
    for number in range(1, MAX_RESTARTS + 1):
        line = f"{KILLED.cause}; all restart (restart {number} of 3)"
        assert restarts.after(KILLED) == (True, line)
    assert restarts.after(KILLED) == (False, f"{KILLED.cause}; gave up after 3 restarts")
    steps = iter(range(20))
    restarts = Restarts(lambda: next(steps))
    assert all(restarts.after(KILLED)[1].endswith("(restart 1 of 3)") for _ in range(10))
