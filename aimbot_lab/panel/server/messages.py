"""Messages between page and server, and values that are looked up for pages in the background.

A page asks `{"v": 1, "id": 7, "part": "training", "kind": "stop", "body": {...}}`, and is answered
`{"v": 1, "reply": 7, "part": ..., "kind": ..., "body": {...}}`. What the server tells of itself has
no `reply`. A refusal has the kind `error` and says in its body's `message` why.

A value is looked up in a thread, and once for all pages that want it. Heavy libraries are imported
when they are first needed, and one after another: threads that import packages with circles inside
(torch, stable-baselines3, numba) at the same time get halves of them, so what runs in a thread
loads what it needs by `Loader` first.
"""

import asyncio
import importlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, ParamSpec, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from aimbot_lab.foundation.errors import LabError, reason_and_place
from aimbot_lab.foundation.files import read_bounded
from aimbot_lab.foundation.shown_text import finite_numbers, one_line, shortened

MAX_BYTES = 2**22
MAX_WORDS = 200  # characters of what is wrong
Value = TypeVar("Value")

VERSION = 1
MAX_MESSAGE = 64 * 1024  # bytes of a message from a page
STRICT = ConfigDict(extra="forbid", strict=True)
Name = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z_]+$")]
RunId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9A-Za-z_-]+$")]
"""Only ever looked up in a list that the server made."""

Key = Annotated[str, Field(min_length=1, max_length=1000)]
"""Of an entry of a list that the server made."""


def read_document(path: Path, form: TypeAdapter[Value]) -> Value:
    """What the file at `path` says. Raises LabError where it is damaged or can't be read."""
    try:
        return form.validate_json(read_bounded(path, MAX_BYTES))
    except OSError as error:
        raise LabError(f"{path.name}: {error.strerror or error}") from error
    except (LabError, ValueError) as error:
        raise LabError(f"{path.name} is damaged: {fault_words(error)}") from error


def fault_words(error: Exception) -> str:
    """What is wrong with a document, in one line: the first of the faults that were found."""
    text = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        text = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
    return shortened(one_line(text), MAX_WORDS)


class MessageError(LabError):
    """What came from a page is not a message."""


@dataclass(frozen=True, config=STRICT)
class Asked:
    """A message from a page."""

    v: Literal[1]
    id: Annotated[int, Field(ge=0)]
    part: Name
    kind: Name
    body: dict[str, Any]


@dataclass(frozen=True, config=STRICT)
class Nothing:
    """A body without anything in it."""


@dataclass(frozen=True, config=STRICT)
class Chosen:
    """An entry of a list, by its key there."""

    key: Key


@dataclass(frozen=True, config=STRICT)
class Refusal:
    """Why something was not done."""

    message: str


@dataclass(frozen=True, config=STRICT)
class Done:
    """That something was done."""

    done: bool = True


def read_message(text: str) -> Asked:
    """The message in `text`. Raises MessageError where it is invalid."""
    try:
        return _ASKED.validate_json(text)
    except ValueError as error:
        raise MessageError(f"no message of this panel: {fault_words(error)}") from error


def read_body(form: type[Any], body: Mapping[str, Any]) -> Any:
    """`body` as a `form`. Raises MessageError where it is invalid."""
    try:
        # As JSON, in which a tuple is a list.
        return TypeAdapter(form).validate_json(json.dumps(body))
    except ValueError as error:
        raise MessageError(f"no such request: {fault_words(error)}") from error


def written(part: str, kind: str, body: Any, *, reply: int | None = None) -> str:
    """A message to a page; `body` is a dataclass or plain JSON values."""
    document = {"v": VERSION, "part": part, "kind": kind, "body": plain(body)}
    document |= {} if reply is None else {"reply": reply}
    try:
        return json.dumps(document, allow_nan=False)
    except ValueError:
        return json.dumps(finite_numbers(document), allow_nan=False)


def plain(body: Any) -> Any:
    """`body` as plain JSON values."""
    return asdict(body) if is_dataclass(body) and not isinstance(body, type) else body


def schema_of(form: type[Any]) -> dict[str, Any]:
    """The JSON schema of a body."""
    return TypeAdapter(form).json_schema(mode="serialization")


_ASKED: TypeAdapter[Asked] = TypeAdapter(Asked)


STORE = ("aimbot_lab.tracking.mlflow_store",)
KERNELS = ("aimbot_lab.foundation.kernels.jit",)
AGENTS = (*KERNELS, "aimbot_lab.training.agents.agent_files")
SWEEPS = ("aimbot_lab.sweep.report",)
Given = ParamSpec("Given")


class Loader:
    """Imports modules for all threads, one at a time."""

    def __init__(self, load: Callable[[str], object] = importlib.import_module) -> None:
        self._load, self._lock = load, threading.Lock()
        self._loaded: set[str] = set()

    def need(self, *modules: str) -> None:
        """Have `modules` imported; waits for what another thread imports."""
        for name in modules:
            if name in self._loaded:
                continue
            with self._lock:
                if name not in self._loaded:
                    self._load(name)
                    self._loaded.add(name)


async def in_thread(
    work: Callable[Given, Value], *arguments: Given.args, **named: Given.kwargs
) -> Value:
    """What `work` returns, called with the other arguments in a thread. Raises what it raises.

    Modules and environments of users run there. What they raise to end their process
    (SystemExit, KeyboardInterrupt) would end the panel in its place: it is raised as LabError.
    """
    found: list[Value] = []

    def done() -> BaseException | None:  # futures can't hold every exception, so none crosses one
        try:
            found.append(work(*arguments, **named))
        except BaseException as error:  # noqa: BLE001
            return error
        return None

    raised = await asyncio.to_thread(done)
    if isinstance(raised, Exception):
        raise raised
    if raised is not None:
        place = reason_and_place(raised)
        raise LabError(f"code that the panel called would have ended it: {place}") from raised
    return found[0]


def failure_words(error: BaseException) -> str:
    """What a person reads of a fault of the panel itself."""
    return shortened(one_line(f"the panel failed: {type(error).__name__}: {error}"), 300)


class Feed(Generic[Value]):
    """What `look` finds every `seconds` seconds, from its first follower to its last."""

    def __init__(self, look: Callable[[], Awaitable[Value]], *, seconds: float) -> None:
        self._look, self._seconds = look, seconds
        self._followers = 0
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._found: list[Value] = []  # one, once there is any
        self._number = 0  # of changes
        self._failure: BaseException | None = None  # that ended the looking

    async def follow(self) -> AsyncIterator[Value]:
        """The value as it is, and each time it is another; raises what looking raises."""
        self._followers += 1
        if self._task is None or self._task.done():
            self._failure = None
            self._task = asyncio.create_task(self._look_again())
        seen = -1
        try:
            while True:
                async with self._changed:
                    while self._failure is None and (seen == self._number or not self._found):
                        await self._changed.wait()
                    if self._failure is not None:
                        raise self._failure
                    seen, value = self._number, self._found[0]
                yield value
        finally:
            self._followers -= 1
            if not self._followers and self._task is not None:
                self._task.cancel()
                self._task, self._found = None, []

    async def look_now(self) -> None:
        """Look before it is time, for example because a request has changed something."""
        await self._take(await self._look())

    async def _look_again(self) -> None:
        try:
            while True:
                await self._take(await self._look())
                await asyncio.sleep(self._seconds)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # each follower is told
            async with self._changed:
                self._failure = error
                self._changed.notify_all()

    async def _take(self, value: Value) -> None:
        if self._found != [value]:
            async with self._changed:
                self._found, self._number = [value], self._number + 1
                self._changed.notify_all()
