"""Threads that step parts of a batch side by side."""

import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any

Part = Callable[[int], None]  # called with the number of the part


class Workers:
    """`count` parts of a task at a time: the caller does part 0, a thread each of the others.

    The parts must release the GIL to gain anything, as kernels do. A hand-over costs about ten
    microseconds, which a pool of futures would multiply. The threads start with the first
    task; a copy and a forked process start their own.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._rooms: list[_Room] = []
        self._process = -1
        self._number = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is a new one of the same size: threads cannot be copied."""
        return Workers, (self._count,)

    def run(self, task: Part) -> None:
        """Do every part of `task`. Raises what a part raised, once all have ended.

        A signal's handler may raise in here at any moment. Parts that had begun are then done
        wholly before this raises, the others not at all.
        """
        if self._process != os.getpid():
            self._start()
        try:
            self._begin(task)
            task(0)
            errors = [room.finish(self._number) for room in self._rooms]
        except BaseException:
            self._drain()
            raise
        for error in errors:
            if error is not None:
                raise error

    def _start(self) -> None:
        rooms = [_Room(part) for part in range(1, self._count)]
        weakref.finalize(self, _close, rooms, os.getpid())
        for room in rooms:
            threading.Thread(target=room.serve, name="aimbot-lab-worker", daemon=True).start()
        self._rooms = rooms
        self._process = os.getpid()

    def _begin(self, task: Part) -> None:
        self._number += 1
        for room in self._rooms:
            room.wanted.put((self._number, task))

    def _drain(self) -> None:
        """Wait until nothing is under way: a last task that does nothing is done as well.

        What raises meanwhile is raised once that is so.
        """
        interrupt: BaseException | None = None
        while True:
            try:
                self._begin(_nothing)
                for room in self._rooms:
                    room.finish(self._number)
                break
            except BaseException as error:  # noqa: BLE001
                interrupt = error
        if interrupt is not None:
            raise interrupt


class _Room:
    """One thread's work, handed to and fro by number.

    An exception may come between any two operations of the caller, so that each must leave
    the room in order: what was told is kept, and the bell only wakes who looks for it.
    """

    def __init__(self, part: int) -> None:
        self._part = part
        self._told: tuple[int, BaseException | None] = (0, None)
        self._bell = threading.Lock()  # free where the worker has told something
        self.wanted: queue.SimpleQueue[tuple[int, Part] | None] = queue.SimpleQueue()

    def finish(self, number: int) -> BaseException | None:
        """Wait until task `number` is done; what it raised."""
        while self._told[0] < number:
            self._bell.acquire()
        _, error = self._told
        self._told = (number, None)
        return error

    def serve(self) -> None:
        """Do tasks until there comes None in their place."""
        while (wanted := self.wanted.get()) is not None:
            number, task = wanted
            error = _raised(task, self._part)
            self._told = number, error
            # An idle thread that held on to a task would keep its arena alive.
            del wanted, task, error
            if self._bell.locked():
                self._bell.release()


def _raised(task: Part, part: int) -> BaseException | None:
    try:
        task(part)
    except BaseException as error:  # noqa: BLE001
        return error
    return None


def _nothing(part: int) -> None:
    """Take no time."""


def _close(rooms: list[_Room], process: int) -> None:
    if process == os.getpid():  # a forked process has the rooms without their threads
        for room in rooms:
            room.wanted.put(None)
