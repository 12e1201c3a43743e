"""Episodes count in the order in which they began, whatever the order of their ends."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aimbot_lab.curriculum.evidence import Outcome, StartOrder
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from tests.episode_batches import ended_batch

SCENARIO = 3


def batch(
    ended: list[int], running: list[int], *, scenario: int = SCENARIO, running_in: int = SCENARIO
) -> EpisodeBatch:
    return ended_batch(
        ["Warning|Result|Win"] * len(ended),
        order=ended,
        scenario=scenario,
        running=running,
        running_scenario=running_in,
    )


def marked(orders: list[int]) -> list[Outcome | None]:
    """Outcomes that tell which episode they are from."""
    return [played(order) for order in orders]


def played(order: int) -> Outcome:
    return Outcome(True, Cell("goto", order))


@settings(max_examples=30)
@given(st.permutations(range(12)), st.data())
def test_every_order_of_ends_counts_the_same_sequence(ends: list[int], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, 12), max_size=4).map(sorted))
    order = StartOrder(SCENARIO)
    counted: list[int] = []
    running = set(ends)
    for first, last in zip([0, *cuts], [*cuts, 12], strict=True):
        running -= set(ends[first:last])
        released = order.add(batch(ends[first:last], sorted(running)), marked(ends[first:last]))
        counted += [outcome.cell.difficulty for outcome in released if outcome.cell]
        if first != last:
            assert counted == list(range(min(running, default=12)))
    assert counted == list(range(12))


def test_an_episode_waits_for_all_that_began_before_it() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([2, 3], [0, 1, 4]), marked([2, 3])) == []
    assert order.add(batch([0], [1, 4, 5]), marked([0])) == [played(0)]
    assert order.add(batch([1], [4, 5, 6]), marked([1])) == marked([1, 2, 3])


def test_episodes_of_another_scenario_or_without_an_outcome_do_not_count_nor_keep_others() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([7], [9], scenario=2), marked([7])) == []
    assert order.waiting == []
    assert order.add(batch([7], [0, 1], running_in=2), marked([7])) == marked([7])
    assert order.add(batch([8, 9], [10]), [None, played(9)]) == marked([9])


def test_a_new_lesson_forgets_what_waited() -> None:
    order = StartOrder(SCENARIO)
    order.add(batch([5], [0]), marked([5]))
    order.begin(4)
    assert order.waiting == []


def test_changes_of_scenario_within_a_lesson_lose_nothing() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([1], [0, 3], running_in=SCENARIO), marked([1])) == []
    later = batch([3], [0, 4], scenario=SCENARIO + 1)
    mixed = later._replace(running_scenario=np.array([SCENARIO, SCENARIO + 1]))
    assert order.add(mixed, marked([3])) == []
    last = batch([0], [4, 5])._replace(running_scenario=np.array([SCENARIO + 1, SCENARIO + 2]))
    assert order.add(last, marked([0])) == marked([0, 1, 3])
