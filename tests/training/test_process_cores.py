"""Processes share out a machine's cores, and gloo's threads interrupt none that compute."""

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aimbot_lab.training.processes.cores import Cores, own_share, usable_cores, yielding_threads


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 3))
def test_shares_are_equal_disjoint_and_all_that_there_is(
    processes: int, size: int, machines: int
) -> None:
    cores = [Cores(f"boot-{number}", tuple(range(processes * size))) for number in range(machines)]
    everyones = cores * processes  # their ranks alternate
    for machine in cores:
        shares = [
            own_share(everyones, rank) for rank, own in enumerate(everyones) if own == machine
        ]
        given_out = [core for own in shares if own is not None for core in own]
        assert sorted(given_out) == list(machine.numbers)
        assert [len(own) for own in shares if own is not None] == [size] * processes


def test_neighbours_on_the_chip_stay_together() -> None:
    hardware_threads = Cores("boot", (0, 4, 1, 5))  # 0 and 4 are of one core
    assert own_share([hardware_threads] * 2, 0) == frozenset({0, 4})
    assert own_share([hardware_threads] * 2, 1) == frozenset({1, 5})


@pytest.mark.parametrize(
    "everyones",
    [
        [Cores("boot", (0, 1, 2))] * 2,  # uneven
        [Cores("boot", (0, 1))] * 4,  # too few
        [Cores("", ())] * 2,  # can't be chosen
    ],
)
def test_who_would_get_no_whole_part_keeps_all(everyones: list[Cores]) -> None:
    assert [own_share(everyones, rank) for rank in range(len(everyones))] == [None] * len(everyones)


def test_who_was_given_its_own_cores_keeps_all_of_them() -> None:
    everyones = [Cores("boot", (0, 1)), Cores("boot", (2, 3))]
    found = [own_share(everyones, rank) for rank in (0, 1)]
    assert found == [frozenset({0, 1}), frozenset({2, 3})]


def test_usable_cores_are_those_of_this_process() -> None:
    found = usable_cores()
    assert set(found.numbers) == os.sched_getaffinity(0)
    assert found.machine
    assert usable_cores() == found


def policy_of_a_new_thread() -> int:
    found = []
    thread = threading.Thread(target=lambda: found.append(os.sched_getscheduler(0)))
    thread.start()
    thread.join()
    return found[0]


def test_only_threads_that_begin_in_the_block_yield() -> None:
    with yielding_threads():
        assert policy_of_a_new_thread() == os.SCHED_BATCH
    assert policy_of_a_new_thread() == os.SCHED_OTHER
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    with pytest.raises(KeyError), yielding_threads():
        raise KeyError
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
