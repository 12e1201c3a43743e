"""Episodes count in the order in which they began, whatever the order of their ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aimbot_lab.curriculum.open_lesson import OpenLesson
from aimbot_lab.curriculum.ordering import StartOrder
from aimbot_lab.curriculum.outcomes import Outcome
from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.foundation.episodes import EpisodeBatch

SCENARIO = 3


def batch(
    ended: list[int], running: list[int], *, scenario: int = SCENARIO, running_in: int = SCENARIO
) -> EpisodeBatch:
    count = len(ended)
    return EpisodeBatch(
        lines=("",) * count,
        row=np.zeros(count, np.int64),
        order=np.array(ended, np.int64),
        scenario=np.full(count, scenario, np.int64),
        length=np.ones(count, np.int64),
        terms=np.zeros((count, 0)),
        running_order=np.array(running, np.int64),
        running_scenario=np.full(len(running), running_in, np.int64),
    )


def marked(orders: list[int]) -> list[Outcome | None]:
    """Outcomes that tell which episode they are from."""
    return [Outcome(True, order) for order in orders]


@given(st.permutations(range(12)), st.data())
def test_every_order_of_ends_counts_the_same_sequence(ends: list[int], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, 12), max_size=4).map(sorted))
    order = StartOrder(SCENARIO)
    counted: list[int] = []
    running = set(ends)
    for first, last in zip([0, *cuts], [*cuts, 12], strict=True):
        running -= set(ends[first:last])
        released = order.add(batch(ends[first:last], sorted(running)), marked(ends[first:last]))
        counted += [outcome.cell for outcome in released]
        if first != last:
            assert counted == list(range(min(running, default=12)))
    assert counted == list(range(12))


def test_an_episode_waits_for_all_that_began_before_it() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([2, 3], [0, 1, 4]), marked([2, 3])) == []
    assert order.add(batch([0], [1, 4, 5]), marked([0])) == [Outcome(True, 0)]
    assert order.add(batch([1], [4, 5, 6]), marked([1])) == marked([1, 2, 3])


def test_episodes_of_another_scenario_do_not_count() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([7], [9], scenario=2), marked([7])) == []
    assert order.waiting == []


def test_episodes_of_another_scenario_keep_none_waiting() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([7], [0, 1], running_in=2), marked([7])) == marked([7])


def test_an_episode_without_an_outcome_keeps_none_waiting() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([0, 1], [2]), [None, Outcome(True, 1)]) == marked([1])


def test_a_new_scenario_forgets_what_waited() -> None:
    order = StartOrder(SCENARIO)
    order.add(batch([5], [0]), marked([5]))
    order.begin(4)
    assert order.waiting == []


def simulated_ends(*, rate: float, rows: int, steps: int) -> list[EpisodeBatch]:
    """Batches of a game in which a win takes 40 steps and a loss 300; the line tells which."""
    generator = np.random.default_rng(11)
    ranks = np.arange(rows)
    wins = generator.random(rows) < rate
    left = np.where(wins, 40, 300)
    batches = []
    for _ in range(steps):
        left -= 1
        over = np.flatnonzero(left == 0)
        ended, won = ranks[over].tolist(), wins[over].tolist()
        ranks[over] = ranks.max() + 1 + np.arange(len(over))
        wins[over] = generator.random(len(over)) < rate
        left[over] = np.where(wins[over], 40, 300)
        lines = tuple("Warning|Result|" + ("Win" if w else "Lose") for w in won)
        batches.append(batch(ended, ranks.tolist())._replace(lines=lines))
    return batches


@pytest.mark.parametrize(("by_beginning", "promotes"), [(False, True), (True, False)])
def test_counting_by_ends_promotes_falsely_and_by_beginnings_does_not(
    by_beginning: bool, promotes: bool
) -> None:
    criteria = CompletionCriteria(threshold=0.7)
    lesson = OpenLesson(
        Lesson(name="a", targets={"goto": 1.0}, completion_criteria=criteria), {"goto": 5}
    )
    order = StartOrder(SCENARIO)
    passed = False
    for ended in simulated_ends(rate=0.5, rows=256, steps=1500):
        outcomes = [Outcome(line.endswith("Win"), -1) for line in ended.lines]
        lesson.count_until_passed(order.add(ended, outcomes) if by_beginning else outcomes)
        passed = passed or lesson.passed
    assert passed is promotes
    assert lesson.episodes > 100
