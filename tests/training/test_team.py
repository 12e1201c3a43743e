"""Threads that share out the parts of a task."""

import threading

import pytest

from aimbot_lab.training.team import MOST_THREADS, Team


@pytest.mark.parametrize("threads", [1, 2, 3, 100])
@pytest.mark.parametrize("parts", [0, 1, 2, 7])
def test_every_part_is_done_once_and_by_the_same_thread_each_time(threads: int, parts: int) -> None:
    team = Team()
    team.resize(threads)
    assert team.threads == min(threads, MOST_THREADS)
    for _ in range(3):
        done: list[tuple[int, int]] = []
        team.run(lambda part, thread, done=done: done.append((part, thread)), parts)
        count = max(1, min(team.threads, parts))
        assert sorted(done) == [(part, part % count) for part in range(parts)]


def test_the_caller_is_the_first_thread_and_the_others_are_not() -> None:
    team, seen = Team(), {}
    team.resize(2)
    team.run(lambda part, thread: seen.setdefault(thread, threading.get_ident()), 2)
    assert seen[0] == threading.get_ident() != seen[1]


@pytest.mark.parametrize("failing", [0, 1])
def test_what_a_part_raises_comes_out_when_all_have_ended(failing: int) -> None:
    team, ended = Team(), []
    team.resize(2)

    def task(part: int, thread: int) -> None:
        if part == failing:
            raise ArithmeticError(f"part {part}")
        ended.append(part)

    with pytest.raises(ArithmeticError, match=f"part {failing}"):
        team.run(task, 2)
    assert ended == [1 - failing]
    team.run(lambda part, thread: ended.append(part), 2)
    assert len(ended) == 3
