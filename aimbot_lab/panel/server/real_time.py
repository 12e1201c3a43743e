"""A game in real time for one page: a decision whenever it is due, paused and held by the page."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.panel.server.game import Game, Keys
from aimbot_lab.panel.server.loading import in_thread
from aimbot_lab.panel.server.messages import STRICT, Done
from aimbot_lab.panel.server.session import Ask, Session

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
    """Calls `decide` every `seconds` unless paused; work on the game goes one by one."""

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


class RunningGame(Protocol):
    """A game by its rules: a scene that is edited, or an episode."""

    @property
    def game(self) -> Game:
        """The row that goes on."""

    @property
    def over(self) -> bool:
        """Whether no decision can follow."""


class PagesGame(Protocol):
    """The game that a page has open."""

    time: RealTime

    @property
    def game(self) -> RunningGame:
        """What is played."""


Open = TypeVar("Open", bound=PagesGame)


def open_game(session: Session, part: str, kind: type[Open]) -> Open:
    """What the page has open in `part`. Raises MisuseError where that is nothing."""
    found = session.state.get(part)
    if not isinstance(found, kind) or not hasattr(found, "time"):
        raise MisuseError("no game is open here: load the page again")
    return found


def game_asks(part: str, kind: type[Any]) -> Mapping[str, Ask]:
    """The requests to pause the page's game in `part`, and what its person holds."""

    async def pause(session: Session, asked: Paused) -> Done:
        found = open_game(session, part, kind)
        found.time.pause(asked.paused or found.game.over)
        return Done()

    async def hold(session: Session, held: Held) -> Done:
        open_game(session, part, kind).game.game.keys = held.keys
        return Done()

    return {"pause": Ask(Paused, pause), "hold": Ask(Held, hold)}
