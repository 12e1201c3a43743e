"""What free processors and a silent head mean; without Ray."""

import socket
from collections.abc import Iterator

import pytest

from aimbot_lab.cluster.connection import HeadLostError
from aimbot_lab.cluster.places import interface_of
from aimbot_lab.cluster.training import HEAD_PATIENCE, SECONDS_BETWEEN_COUNTS, Growth, RayHead


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


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
    clock.now += SECONDS_BETWEEN_COUNTS
    assert not growth.is_due
    there["step"] = 2
    assert not growth.is_due, "there is no room"
    there["room"] = 1
    clock.now += SECONDS_BETWEEN_COUNTS
    assert not growth.is_due, "what was learned since the newest checkpoint would be lost"
    there["step"] = 3
    assert growth.is_due


def test_nothing_grows_where_nothing_is_missing() -> None:
    clock, steps = Clock(), iter(range(20))
    growth = Growth(lambda: 8, 0, lambda: next(steps), clock=clock)
    for _ in range(4):
        clock.now += SECONDS_BETWEEN_COUNTS
        assert not growth.is_due


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_a_head_is_gone_once_it_was_silent_for_long(listener: socket.socket) -> None:
    clock = Clock()
    head = RayHead(f"127.0.0.1:{listener.getsockname()[1]}", clock=clock)
    for _ in range(3):
        clock.now += HEAD_PATIENCE
        head.check()
    listener.close()
    clock.now += HEAD_PATIENCE / 2
    head.check()
    clock.now += HEAD_PATIENCE / 2
    with pytest.raises(HeadLostError, match=f"{head.address} is gone"):
        head.check()


def test_a_head_without_an_address_counts_as_there() -> None:
    clock = Clock()
    head = RayHead("", clock=clock)
    clock.now += 10 * HEAD_PATIENCE
    head.check()


def test_the_interface_of_an_address_is_found() -> None:
    assert interface_of("127.0.0.1") in ("lo", "lo0")
    assert interface_of("203.0.113.7") is None
