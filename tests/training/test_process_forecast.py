"""The model of what processes bring: its laws, and the specification's table, by the formula."""

from dataclasses import replace

import pytest

from aimbot_lab.training.processes.forecast import (
    GIGABIT,
    ON_PAPER,
    TEN_GIGABIT,
    Costs,
    Work,
    expected,
)

GOTO = Work(rows=512, shards=16, steps=64, epochs=4, minibatches=8, weights=16_916)
LARGER = GOTO._replace(weights=50_196)  # layers of 128 and 128
COUNTS = (1, 2, 3, 4, 8, 16)
NETWORKS = (TEN_GIGABIT, GIGABIT)


def strong(work: Work, processes: int, costs: Costs) -> float:
    """How many times as fast as one process, with the same rows."""
    return expected(work, 1, costs).whole_ms / expected(work, processes, costs).whole_ms


def weak(processes: int, costs: Costs) -> float:
    """Million steps a second where every process has as many rows."""
    work = GOTO._replace(rows=512 * processes, shards=16 * processes)
    return work.samples / expected(work, processes, costs).whole_ms / 1e3


@pytest.mark.parametrize("work", [GOTO, LARGER])
@pytest.mark.parametrize("costs", [ON_PAPER, *NETWORKS])
def test_one_process_exchanges_nothing(work: Work, costs: Costs) -> None:
    alone = expected(work, 1, costs)
    assert (alone.exchange_ms, alone.exchange_share) == (0.0, 0.0)
    assert alone.whole_ms == alone.computing_ms > 0.0


@pytest.mark.parametrize("processes", COUNTS)
def test_more_bandwidth_is_never_slower(processes: int) -> None:
    rates = [1e3 * 4.0**k for k in range(12)]
    times = [
        expected(GOTO, processes, replace(ON_PAPER, bytes_per_ms=rate)).whole_ms for rate in rates
    ]
    assert times == sorted(times, reverse=True)
    assert (len(set(times)) > 1) == (processes > 1)


@pytest.mark.parametrize("costs", [ON_PAPER, *NETWORKS])
def test_more_processes_compute_less_each_and_exchange_more(costs: Costs) -> None:
    found = [expected(LARGER, processes, costs) for processes in (1, 2, 4, 8, 16)]
    computing = [one.computing_ms for one in found]
    assert computing == sorted(computing, reverse=True)
    shares = [one.exchange_share for one in found]
    assert shares == sorted(shares)
    assert all(0.0 <= share < 1.0 for share in shares)


def test_the_one_with_most_shards_is_waited_for() -> None:
    calm = replace(ON_PAPER, jitter=0.0)
    three = expected(GOTO, 3, calm)  # 5, 5 and 6 shards of 32 rows
    assert three.computing_ms == pytest.approx(12.0 + 6 * 32 * 0.33)


def test_the_formula_of_one_process_is_the_specification_s() -> None:
    for rows in (32, 512, 4096):
        work = GOTO._replace(rows=rows)
        assert expected(work, 1).whole_ms == pytest.approx(12.0 + 0.33 * rows)


def test_twice_the_steps_take_twice_the_computing() -> None:
    work = GOTO._replace(steps=128)
    assert expected(work, 2).computing_ms == pytest.approx(2 * expected(GOTO, 2).computing_ms)


def test_fewer_epochs_spare_learning_alone() -> None:
    costs = replace(ON_PAPER, fixed_ms=0.0)
    four, none = (expected(GOTO._replace(epochs=epochs), 1, costs).whole_ms for epochs in (4, 0))
    assert none == pytest.approx(0.28 * four)


def test_a_slower_processor_is_slower_in_computing_alone() -> None:
    slow, usual = (expected(GOTO, 4, costs) for costs in (ON_PAPER.scaled(2.0), ON_PAPER))
    assert slow.computing_ms == pytest.approx(2.0 * usual.computing_ms)
    assert slow.exchange_ms == usual.exchange_ms


@pytest.mark.parametrize(("processes", "milliseconds"), [(1, 181), (2, 118), (4, 80)])
def test_within_a_machine_it_gives_the_specification_s_milliseconds(
    processes: int, milliseconds: float
) -> None:
    assert expected(GOTO, processes).whole_ms == pytest.approx(milliseconds, abs=1.0)


@pytest.mark.parametrize(
    ("processes", "small", "large"),
    [(1, 1.0, 1.0), (2, 1.5, 1.7), (4, 2.1, 2.7), (8, 2.6, 3.8), (16, 2.8, 4.5)],
)
def test_it_gives_the_specification_s_speeds_of_the_same_curriculum(
    processes: int, small: float, large: float
) -> None:
    assert round(strong(GOTO, processes, TEN_GIGABIT), 1) == small
    assert round(strong(LARGER, processes, TEN_GIGABIT), 1) == large


@pytest.mark.parametrize(
    ("processes", "ten", "one"),
    [
        *((1, 0.18, 0.18), (2, 0.31, 0.29), (4, 0.59, 0.50)),
        *((8, 1.1, 0.9), (16, 2.2, 1.6), (64, 8, 5), (256, 30, 17)),
    ],
)
def test_it_gives_the_specification_s_speeds_of_more_rows(
    processes: int, ten: float, one: float
) -> None:
    digits = 2 if processes < 8 else 1 if processes < 64 else 0
    assert round(weak(processes, TEN_GIGABIT), digits) == ten
    # Of 1 GbE the table is steeper than its formula: 1 to 2 % of few, 10 % of very many processes.
    assert weak(processes, GIGABIT) == pytest.approx(one, rel=0.03 if processes < 64 else 0.13)


def test_on_a_slow_network_more_than_four_processes_bring_nothing() -> None:
    for work in (GOTO, LARGER):
        best = max(COUNTS, key=lambda processes: strong(work, processes, GIGABIT))
        assert best == 4
