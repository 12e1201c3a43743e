"""Values that are looked up again and again while somebody wants them, once for all who do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Feed(Generic[Value]):
    """What `look` finds every so many `seconds`, from its first follower to its last."""

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
