"""What goes on for a page of the panel, and ends with it."""

import asyncio
import warnings
from typing import Any

import pytest

from aimbot_lab.panel.server.session import Session


@pytest.fixture
def session() -> Session:
    nothing: Any = None
    return Session(nothing, nothing, nothing)


def test_what_is_ended_before_it_began_leaves_nothing_behind(session: Session) -> None:
    """A page that is closed at once."""

    async def work() -> None:
        raise AssertionError("it must not begin")

    async def opened_and_closed() -> None:
        session.go_on("play", work())
        session.leave("play")
        await asyncio.sleep(0)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(opened_and_closed())
    assert [str(one.message) for one in told] == []
