"""What the parts Test and Play share: a game in real time, paused and held by its page."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.panel.server.games.game import Game
from aimbot_lab.panel.server.games.real_time import Held, Paused, RealTime
from aimbot_lab.panel.server.messages import Done
from aimbot_lab.panel.server.session import Ask, Session


class PlayedGame(Protocol):
    """A game by its rules: a scene that is edited, or an episode."""

    @property
    def game(self) -> Game:
        """The row that goes on."""
        ...

    @property
    def over(self) -> bool:
        """Whether no decision can follow."""
        ...


class OpenGame(Protocol):
    """The game that a page has open."""

    time: RealTime

    @property
    def game(self) -> PlayedGame:
        """What is played."""
        ...


Open = TypeVar("Open", bound=OpenGame)


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
