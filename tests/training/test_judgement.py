"""What the ends of a training's processes mean."""

import signal

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

WELL = [ProcessEnd(rank, 0, "") for rank in range(3)]
KILLED = ProcessEnd(1, -signal.SIGKILL, "rank 1 was ended by SIGKILL")
NOTICED = ProcessEnd(0, LostError.exit_code, "rank 0 ended with exit code 75")
REFUSED = [ProcessEnd(rank, 2, f"rank {rank}: no such key") for rank in range(2)]
SAVED = ProcessEnd(0, STOPPED, "")


def test_all_that_end_well_end_the_run() -> None:
    assert judged(WELL, stopping=False) == Verdict(0)


def test_the_cause_of_a_loss_is_the_signal_and_not_who_noticed_it() -> None:
    assert judged([NOTICED, KILLED], stopping=False) == Verdict(None, loss=KILLED)


def test_an_error_that_all_meet_ends_the_run_with_its_code_and_is_told_once() -> None:
    assert judged(REFUSED, stopping=False) == Verdict(2)
    assert judged(REFUSED[::-1], stopping=False) == Verdict(2)
    assert judged([NOTICED, REFUSED[1]], stopping=False) == Verdict(2, error=REFUSED[1].cause)
    assert judged([*REFUSED, KILLED], stopping=False).loss is None


@pytest.mark.parametrize("code", [0, STOPPED])
@pytest.mark.parametrize("other", [KILLED, ProcessEnd(1, 1, "rank 1 failed")])
def test_once_the_leader_has_ended_well_the_others_change_nothing(
    code: int, other: ProcessEnd
) -> None:
    assert judged([other, ProcessEnd(0, code, "")], stopping=False) == Verdict(code)


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
