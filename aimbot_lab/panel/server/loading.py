"""What is looked up for pages: in threads, and once for all who want it.

Heavy libraries are imported when they are first needed, and one after another. Threads that import
packages with circles inside (torch, stable-baselines3, numba) at the same time get halves of them;
so what runs in a thread loads what it needs by `Loader` first.
"""

import asyncio
import importlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, ParamSpec, TypeVar

from aimbot_lab.foundation.errors import LabError, reason_and_place
from aimbot_lab.foundation.shown_text import one_line, shortened

STORE = ("aimbot_lab.tracking.mlflow_store",)
KERNELS = ("aimbot_lab.foundation.kernels.jit",)
AGENTS = (*KERNELS, "aimbot_lab.training.agents.agent_files")
SWEEPS = ("aimbot_lab.sweep.report",)
Value = TypeVar("Value")
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
