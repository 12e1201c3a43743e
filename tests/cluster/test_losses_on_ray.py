"""What ends of processes, free processors and a silent head mean; without Ray."""

import signal
import socket
from collections.abc import Iterator

import pytest

from aimbot_lab.cluster.connection import HeadLostError
from aimbot_lab.cluster.growth import SECONDS_BETWEEN_LOOKS, Growth
from aimbot_lab.cluster.head import PATIENCE, Head
from aimbot_lab.cluster.judgement import (
    MAX_RESTARTS,
    STOPPED,
    Ended,
    Restarts,
    Verdict,
    judged,
    machine_lost,
)
from aimbot_lab.cluster.process_actor import interface_of
from aimbot_lab.training.processes.place import LostError

WELL = [Ended(rank, 0, was_lost=False, cause="") for rank in range(3)]
KILLED = Ended(1, -signal.SIGKILL, was_lost=True, cause="rank 1 was ended by SIGKILL")
NOTICED = Ended(0, LostError.exit_code, was_lost=True, cause="rank 0 ended with exit code 75")
REFUSED = [Ended(rank, 2, was_lost=False, cause=f"rank {rank}: no such key") for rank in range(2)]
SAVED = Ended(0, STOPPED, was_lost=False, cause="")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_all_that_end_well_end_the_run() -> None:
    assert judged(WELL, stopping=False) == Verdict(0)


def test_the_cause_of_a_loss_is_the_signal_and_not_who_noticed_it() -> None:
    assert judged([NOTICED, KILLED], stopping=False) == Verdict(None, loss=KILLED)
    gone = machine_lost(2, "10.0.0.2")
    assert judged([NOTICED, gone], stopping=False) == Verdict(None, loss=gone)


def test_an_error_that_all_meet_ends_the_run_with_its_code_and_is_told_once() -> None:
    assert judged(REFUSED, stopping=False) == Verdict(2)
    assert judged([NOTICED, REFUSED[1]], stopping=False) == Verdict(2, error=REFUSED[1].cause)
    assert judged([*REFUSED, KILLED], stopping=False).loss is None


def test_who_was_asked_to_stop_is_not_begun_again() -> None:
    assert judged([SAVED, KILLED], stopping=True) == Verdict(STOPPED)
    assert judged([SAVED], stopping=True) == Verdict(STOPPED)
    assert judged(WELL, stopping=True) == Verdict(0)


def test_losses_without_a_checkpoint_between_are_mended_three_times() -> None:
    restarts = Restarts(lambda: 7)
    for number in range(1, MAX_RESTARTS + 1):
        line = f"{KILLED.cause}; all begin again (restart {number} of 3)"
        assert restarts.after(KILLED) == (True, line)
    assert restarts.after(KILLED) == (False, f"{KILLED.cause}; gave up after 3 restarts")


def test_every_new_checkpoint_gives_all_restarts_back() -> None:
    steps = iter(range(20))
    restarts = Restarts(lambda: next(steps))
    assert all(restarts.after(KILLED)[1].endswith("(restart 1 of 3)") for _ in range(10))


@pytest.fixture
def growing() -> tuple[Growth, Clock, dict[str, int]]:
    """Two processes are missing; the clock, and what is free and reached."""
    clock, there = Clock(), {"room": 0, "step": 1}
    growth = Growth(lambda: there["room"], 2, lambda: there["step"], clock=clock)
    return growth, clock, there


def test_more_processes_begin_once_a_checkpoint_was_written_since_there_is_room(
    growing: tuple[Growth, Clock, dict[str, int]],
) -> None:
    growth, clock, there = growing
    clock.now += SECONDS_BETWEEN_LOOKS
    assert not growth.is_due
    there["step"] = 2
    assert not growth.is_due, "there is no room"
    there["room"] = 1
    clock.now += SECONDS_BETWEEN_LOOKS
    assert not growth.is_due, "what was learned since the newest checkpoint would be lost"
    there["step"] = 3
    assert growth.is_due


def test_nothing_grows_where_nothing_is_missing() -> None:
    clock, steps = Clock(), iter(range(20))
    growth = Growth(lambda: 8, 0, lambda: next(steps), clock=clock)
    for _ in range(4):
        clock.now += SECONDS_BETWEEN_LOOKS
        assert not growth.is_due


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_a_head_is_gone_once_it_was_silent_for_long(listener: socket.socket) -> None:
    clock = Clock()
    head = Head(f"127.0.0.1:{listener.getsockname()[1]}", clock=clock)
    for _ in range(3):
        clock.now += PATIENCE
        head.check()
    listener.close()
    clock.now += PATIENCE / 2
    head.check()
    clock.now += PATIENCE / 2
    with pytest.raises(HeadLostError, match=f"{head.address} is gone"):
        head.check()


def test_a_head_without_an_address_counts_as_there() -> None:
    clock = Clock()
    head = Head("", clock=clock)
    clock.now += 10 * PATIENCE
    head.check()


def test_the_interface_of_an_address_is_found() -> None:
    assert interface_of("127.0.0.1") in ("lo", "lo0")
    assert interface_of("203.0.113.7") is None
