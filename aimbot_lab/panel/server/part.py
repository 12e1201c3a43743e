"""What a part of the page is on the server: the requests it takes, and what it tells."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aimbot_lab.panel.server.messages import (
    Asked,
    Done,
    MessageError,
    Nothing,
    read_body,
    schema_of,
)
from aimbot_lab.panel.server.session import Session


@dataclass(frozen=True)
class Ask:
    """A request of a page: the form of its body, who does it, and the form of the answer."""

    form: type[Any]
    do: Callable[[Session, Any], Awaitable[Any]]
    answer: type[Any] = Done


@dataclass(frozen=True)
class Part:
    """A part of the page, by the name that its messages and its page module bear."""

    name: str
    asks: Mapping[str, Ask]
    tells: Mapping[str, type[Any]] = field(default_factory=dict)  # by kind, without being asked

    def schemas(self) -> dict[str, Any]:
        """The JSON schemas of its messages' bodies."""
        return {
            "asks": {kind: schema_of(ask.form) for kind, ask in self.asks.items()},
            "answers": {kind: schema_of(ask.answer) for kind, ask in self.asks.items()},
            "tells": {kind: schema_of(form) for kind, form in self.tells.items()},
        }


def leaving(name: str, *, forgets: bool = True) -> Ask:
    """The request `leave` of the part `name`: all that goes on for it ends.

    What it keeps for the page is forgotten unless it `forgets` nothing.
    """

    async def leave(session: Session, _: Nothing) -> Done:
        session.leave(name)
        if forgets:
            session.state.pop(name, None)
        return Done()

    return Ask(Nothing, leave)


async def do(session: Session, asked: Asked, parts: Mapping[str, Part]) -> Any:
    """The answer of one of `parts` to a request. Raises LabError where it is refused."""
    part = parts.get(asked.part)
    ask = None if part is None else part.asks.get(asked.kind)
    if ask is None:
        raise MessageError(f"{asked.part}/{asked.kind}: this panel knows no such request")
    return await ask.do(session, read_body(ask.form, asked.body))
