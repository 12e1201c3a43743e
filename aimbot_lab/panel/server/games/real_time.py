"""Games that go on in real time for one page: a decision whenever it is due, in a thread."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.panel.server.games.game import Keys
from aimbot_lab.panel.server.loading import in_thread
from aimbot_lab.panel.server.messages import STRICT

Value = TypeVar("Value")
Way = Annotated[int, Field(ge=-1, le=1)]
MAX_LATE = 0.5  # s behind, from which decisions are left out rather than made up for


@dataclass(frozen=True, config=STRICT)
class Paused:
    """Whether no decision is made."""

    paused: bool


@dataclass(frozen=True, config=STRICT)
class Held:
    """What a person holds and has turned in all."""

    ahead: Way
    right: Way
    attack: bool
    mouse: Annotated[float, Field(ge=-1e9, le=1e9)]

    @property
    def keys(self) -> Keys:
        """The same for a game."""
        return Keys(self.ahead, self.right, self.attack, self.mouse)


class RealTime:
    """Calls `decide` every so many `seconds` unless paused; work on the game goes one by one."""

    def __init__(self, decide: Callable[[], Awaitable[None]], *, seconds: float) -> None:
        self._decide, self._seconds = decide, seconds
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self._lock = asyncio.Lock()

    @property
    def paused(self) -> bool:
        """Whether no decision is due."""
        return not self._goes_on.is_set()

    def pause(self, paused: bool) -> None:
        """Make no more decisions, or go on."""
        if paused:
            self._goes_on.clear()
        else:
            self._goes_on.set()

    async def do(self, work: Callable[[], Value]) -> Value:
        """What `work` on the game returns, done between two decisions."""
        async with self._lock:
            return await in_thread(work)

    async def run(self) -> None:
        """Go on until cancelled."""
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            await self._goes_on.wait()
            await self._decide()
            due = max(due + self._seconds, clock() - MAX_LATE)
            await asyncio.sleep(max(due - clock(), 0.0))
