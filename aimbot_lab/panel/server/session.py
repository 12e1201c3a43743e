"""One open page: what it asks, what it is told, and what goes on for it.

Memory is bounded however slow the page is: of what is only shown (`show`) the newest counts, and a
page that leaves more than MAX_WAITING answers unread is cut off; it connects again by itself.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.panel.server.loading import Feed, failure_words
from aimbot_lab.panel.server.messages import (
    Asked,
    Done,
    MessageError,
    Nothing,
    Refusal,
    plain,
    read_body,
    read_message,
    schema_of,
    written,
)

if TYPE_CHECKING:
    from aimbot_lab.panel.server.lab import Lab


MAX_WAITING = 200  # messages
MAX_AT_WORK = 16  # requests of one page
TOO_SLOW, GOING_AWAY = 1013, 1001
LOG = logging.getLogger(__name__)
Value = TypeVar("Value")


Do = Callable[["Session", Asked], Awaitable[Any]]
"""What is asked to the body of its answer. Raises LabError where it is refused."""


class Session:
    """The connection of one page, whose requests `do` does."""

    def __init__(self, socket: WebSocket, lab: "Lab", do: Do) -> None:
        self.lab = lab
        self.state: dict[str, Any] = {}  # what parts keep for this page, by their names
        self._socket, self._do = socket, do
        self._waiting: deque[str] = deque()
        self._newest: dict[tuple[str, str], str] = {}
        self._ready = asyncio.Event()
        self._too_slow = False
        self._going_on: dict[str, asyncio.Task[None]] = {}
        self._at_work: set[asyncio.Task[None]] = set()

    def tell(self, part: str, kind: str, body: Any, *, reply: int | None = None) -> None:
        """Send a message, after those before it."""
        self._waiting.append(written(part, kind, body, reply=reply))
        self._too_slow = len(self._waiting) > MAX_WAITING
        self._ready.set()

    def show(self, part: str, kind: str, body: Any) -> None:
        """Send a message in place of an unsent one of its kind."""
        self._newest[part, kind] = written(part, kind, body)
        self._ready.set()

    def go_on(self, part: str, work: Coroutine[Any, Any, None], *, name: str = "") -> None:
        """Have `work` go on for the page, in place of what went on for `part` under that name.

        It ends with the page; a LabError that it raises is told to the page.
        """
        self.stop(part, name=name)
        task = asyncio.create_task(self._told(part, work))
        task.add_done_callback(lambda _: work.close())  # one that ended before it began
        self._going_on[f"{part}/{name}"] = task

    def follow(
        self, part: str, kind: str, feed: Feed[Value], body: Callable[[Value], Any] = plain
    ) -> None:
        """Show every value of `feed` as a message of that kind, in place of what did so before."""

        async def shown() -> None:
            async for value in feed.follow():
                self.show(part, kind, body(value))

        self.go_on(part, shown(), name=kind)

    def stop(self, part: str, *, name: str = "") -> None:
        """End what goes on for `part` under that name, if anything does."""
        task = self._going_on.pop(f"{part}/{name}", None)
        if task is not None:
            task.cancel()

    def leave(self, part: str) -> None:
        """End all that goes on for `part`."""
        for key in [*self._going_on]:
            if key.startswith(f"{part}/"):
                self._going_on.pop(key).cancel()

    async def serve(self) -> None:
        """Listen and answer until the page is gone."""
        tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._write())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            every = [*tasks, *self._going_on.values(), *self._at_work]
            for task in every:
                task.cancel()
            await asyncio.gather(*every, return_exceptions=True)
            if self._socket.client_state is WebSocketState.CONNECTED:
                with suppress(RuntimeError, WebSocketDisconnect):
                    await self._socket.close(TOO_SLOW if self._too_slow else GOING_AWAY)

    async def _listen(self) -> None:
        with suppress(WebSocketDisconnect):
            while True:
                text = await self._socket.receive_text()
                if len(self._at_work) >= MAX_AT_WORK:
                    self.tell("panel", "error", Refusal("too many requests at once; try again"))
                    continue
                task = asyncio.create_task(self._answer(text))
                self._at_work.add(task)
                task.add_done_callback(self._at_work.discard)

    async def _write(self) -> None:
        with suppress(WebSocketDisconnect):
            while not self._too_slow:
                await self._ready.wait()
                self._ready.clear()
                while self._waiting and not self._too_slow:
                    await self._socket.send_text(self._waiting.popleft())
                for key in [*self._newest]:
                    await self._socket.send_text(self._newest.pop(key))

    async def _answer(self, text: str) -> None:
        try:
            asked = read_message(text)
        except MessageError as error:
            self.tell("panel", "error", Refusal(str(error)))
            return
        with self._telling_why(asked.part, reply=asked.id):
            body = await self._do(self, asked)
            self.tell(asked.part, asked.kind, body, reply=asked.id)

    async def _told(self, part: str, work: Coroutine[Any, Any, None]) -> None:
        with self._telling_why(part):
            await work

    @contextmanager
    def _telling_why(self, part: str, *, reply: int | None = None) -> Iterator[None]:
        """Tell the page in one line of `part` whatever is raised, be it what ends a process."""
        try:
            yield
        except asyncio.CancelledError:
            raise
        except LabError as error:
            self.tell(part, "error", Refusal(str(error)), reply=reply)
        except BaseException as error:
            LOG.exception("a request, or what went on for a page, failed")
            self.tell(part, "error", Refusal(failure_words(error)), reply=reply)


@dataclass(frozen=True)
class Ask:
    """A request of a page: the form of its body, who does it, and the form of the answer."""

    form: type[Any]
    do: Callable[[Session, Any], Awaitable[Any]]
    answer: type[Any] = Done


@dataclass(frozen=True)
class PagePart:
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


async def do(session: Session, asked: Asked, parts: Mapping[str, PagePart]) -> Any:
    """The answer of one of `parts` to a request. Raises LabError where it is refused."""
    part = parts.get(asked.part)
    ask = None if part is None else part.asks.get(asked.kind)
    if ask is None:
        raise MessageError(f"{asked.part}/{asked.kind}: this panel knows no such request")
    return await ask.do(session, read_body(ask.form, asked.body))
