"""One open page: what it asks, what it is told; and what all open pages share of a data folder.

Memory is bounded however slow the page is: of what is only shown (`show`) the newest counts, and a
page that leaves more than MAX_WAITING answers unread is cut off; it connects again by itself.
"""

import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from aimbot_lab.experiment.runs.run_record import close_orphan_runs, noted_in, read_record
from aimbot_lab.foundation.errors import ConfigurationError, LabError, file_reason
from aimbot_lab.foundation.named_code import TRUST, NamedCode, is_allowed
from aimbot_lab.panel.server.messages import (
    STORE,
    Asked,
    Done,
    Feed,
    Loader,
    MessageError,
    Nothing,
    Refusal,
    failure_words,
    in_thread,
    plain,
    read_body,
    read_message,
    schema_of,
    written,
)
from aimbot_lab.panel.server.replays import ReplayList
from aimbot_lab.panel.server.run_list import LiveRun, RunList, Runs, Sweeps
from aimbot_lab.panel.server.trainings import Curricula, OfferedSweeps, Started, Trainings
from aimbot_lab.tracking.data_folder import DataFolder, choose_address
from aimbot_lab.tracking.history import read_run
from aimbot_lab.tracking.run_folder import running_run
from aimbot_lab.tracking.ui import UiCommand, page_of, ui_command

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
        self.turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by part, first come first

    def tell(self, part: str, kind: str, body: Any, *, reply: int | None = None) -> None:
        """Send a message, after those before it and after what was shown of its part."""
        self._waiting.extend(self._newest.pop(key) for key in [*self._newest] if key[0] == part)
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
        except OSError as error:  # of a full disk, or of a folder that was deleted
            self.tell(part, "error", Refusal(file_reason(error)), reply=reply)
        except BaseException as error:
            LOG.exception("a request, or what went on for a page, failed")
            self.tell(part, "error", Refusal(failure_words(error)), reply=reply)


@dataclass(frozen=True)
class Ask:
    """A request of a page: the form of its body, who does it, and the form of the answer.

    One that is done `in_turn` begins when those of its part that came before have ended, so that
    the last choice counts.
    """

    form: type[Any]
    do: Callable[[Session, Any], Awaitable[Any]]
    answer: type[Any] = Done
    in_turn: bool = False


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
    body = read_body(ask.form, asked.body)
    async with session.turns[asked.part] if ask.in_turn else nullcontext():
        return await ask.do(session, body)


WAIT_SECONDS = 90.0  # for the page to answer, the first time
PAUSE = 0.25
HOST = "127.0.0.1"

MAX_KEPT = 16  # plays of runs, which hold networks, and reports
Kept = TypeVar("Kept")
MAX_FEEDS = 64  # runs that are looked at in turn before the first are forgotten


class MlflowPage:
    """Where a browser finds the runs of a data folder in MLflow."""

    def __init__(
        self, data_folder: DataFolder, *, tracking_uri: str | None, loader: Loader
    ) -> None:
        self._loader = loader
        self._data_folder, self._tracking_uri = data_folder, tracking_uri
        self._process: subprocess.Popen[bytes] | None = None
        self._command: UiCommand | None = None
        self._starting = asyncio.Lock()

    async def address_of(self, run_id: str) -> str:
        """Where the run's own page is. Raises LabError where there is none."""
        part, server = await in_thread(self._part_of, run_id)
        if server is not None:
            return server + part
        async with self._starting:
            if self._command is None or self._has_ended():
                self._command = await in_thread(self._start)
            until = time.monotonic() + WAIT_SECONDS
            while not await in_thread(self._command.answers):
                if self._has_ended() or time.monotonic() > until:
                    raise LabError("MLflow's page did not start: aimbot-lab ui says why")
                await asyncio.sleep(PAUSE)
        return self._command.address + part

    def _part_of(self, run_id: str) -> tuple[str, str | None]:
        """The run's part of the page, and the address of a server that has its own page."""
        self._loader.need(*STORE)
        found = read_run(self._data_folder, run_id, tracking_uri=self._tracking_uri)
        address = choose_address(self._data_folder, explicit=self._tracking_uri)
        return page_of([found]), address.shown.rstrip("/") if address.is_server else None

    def _start(self) -> UiCommand:
        close_orphan_runs(self._data_folder)
        with socket.socket() as free:
            free.bind((HOST, 0))
            port = free.getsockname()[1]
        command = ui_command(
            self._data_folder, tracking_uri=self._tracking_uri, host=HOST, port=port
        )
        tied = "aimbot_lab.cli.stopping"  # it ends when the pipe below is closed
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", tied, *command.arguments],
            env=dict(command.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return command

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None


class Lab:
    """The runs of a data folder, seen from the folder in which the panel was started.

    This process runs no code that files name. What the user trusts (the value of TRUST) may run in
    processes that are started from here.
    """

    def __init__(
        self, data_folder: DataFolder, *, here: Path, tracking_uri: str | None = None
    ) -> None:
        self.data_folder, self.here, self.tracking_uri = data_folder, here, tracking_uri
        self._trusted = os.environ.pop(TRUST, "")
        self.loader = Loader()
        self._kept: dict[str, Any] = {}
        self._live: dict[str, tuple[LiveRun, Feed[dict[str, Any]]]] = {}

    @cached_property
    def run_list(self) -> RunList:
        """The runs that are here: those that train, and others."""
        return RunList(self.data_folder, tracking_uri=self.tracking_uri, loader=self.loader)

    @cached_property
    def runs(self) -> Feed[Runs]:
        """The same, looked up while a page wants them."""
        return Feed(self.run_list.listed, seconds=1.0)

    @cached_property
    def curricula(self) -> Curricula:
        """What can be trained."""
        return Curricula(self.here)

    @cached_property
    def offered_sweeps(self) -> OfferedSweeps:
        """What can be searched."""
        return OfferedSweeps(self.here)

    @cached_property
    def trainings(self) -> Trainings:
        """What pages have started."""
        return Trainings(
            self.data_folder,
            here=self.here,
            loader=self.loader,
            tracking_uri=self.tracking_uri,
            environment={TRUST: self._trusted},
        )

    @cached_property
    def started(self) -> Feed[Started | None]:
        """The training that was started last, looked up while a page wants it."""

        async def look() -> Started | None:
            return await in_thread(self.trainings.look)

        return Feed(look, seconds=0.5)

    @cached_property
    def replays(self) -> ReplayList:
        """Recorded episodes."""
        uri = self.tracking_uri
        return ReplayList(self.data_folder, here=self.here, tracking_uri=uri, loader=self.loader)

    @cached_property
    def sweeps(self) -> Sweeps:
        """Searches."""
        return Sweeps(self.data_folder, self.loader)

    @cached_property
    def mlflow(self) -> MlflowPage:
        """MLflow's page."""
        uri = self.tracking_uri
        return MlflowPage(self.data_folder, tracking_uri=uri, loader=self.loader)

    def may_run(self, code: NamedCode) -> bool:
        """Whether `code` may run in a process of its own."""
        return is_allowed(code, trusted=self._trusted) or noted_in(self.data_folder)(code)

    def find(self, run: str) -> str:
        """The id of the run that is meant by its id, the beginning of it, or "latest".

        One that trains here counts before all others. Raises ConfigurationError where no run or
        more than one is meant.
        """
        from aimbot_lab.tracking.history import find_run

        with suppress(ConfigurationError):
            return str(running_run(self.data_folder, run).run_id)
        return find_run(self.data_folder, run, tracking_uri=self.tracking_uri).run_id

    def more_steps(self, run_id: str) -> list[str]:
        """Words that give a run whose steps are spent as many again."""
        folder = self.run_list.find(run_id)
        record = None if folder is None else read_record(folder.checkpoints)
        spent = None if record is None else record.spent_steps
        return [] if not spent else ["--set", f"train.total_steps={2 * spent}"]

    def live_run(self, run_id: str) -> LiveRun:
        """A run, whether it trains or not. Raises LabError for an unknown id."""
        return self._watched(run_id)[0]

    def feed_of(self, run_id: str) -> Feed[dict[str, Any]]:
        """How that run stands, as long as a page watches."""
        return self._watched(run_id)[1]

    def kept(self, key: str, make: Callable[[], Kept]) -> Kept:
        """What was made under `key`, made now if need be; those used last are kept."""
        found: Kept = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = found
        while len(self._kept) > MAX_KEPT:
            self._kept.pop(next(iter(self._kept)))
        return found

    def _watched(self, run_id: str) -> tuple[LiveRun, Feed[dict[str, Any]]]:
        if run_id not in self._live:
            run = LiveRun(self.run_list, run_id)
            while len(self._live) >= MAX_FEEDS:
                self._live.pop(next(iter(self._live)))
            self._live[run_id] = run, Feed(run.look, seconds=0.25)
        return self._live[run_id]
