"""Threads that work on one task side by side."""

import os
import queue
import threading
import time
import weakref
from typing import Any, Protocol

import numpy as np

from aimbot_lab.foundation.kernels.atomic import Words
from aimbot_lab.foundation.threads.spin_sync import (
    ASLEEP,
    STRIDE,
    call_out,
    fall_asleep,
    is_asleep,
    is_at_work,
    post,
)

PAUSE_SECONDS = 5e-5  # between two looks at a worker that other processes keep from working


class Task(Protocol):
    """Work that several threads share."""

    def __call__(self, seat: int, /) -> None:
        """Work as thread `seat`: 0 the caller, k + 1 worker k.

        The caller returns when the work is done or others are at the rest of it, a worker when it
        has looked out in vain for more (see `foundation.handover`).
        """
        ...


class Workers:
    """The caller and `count` - 1 threads that work on a task together.

    A task must release the GIL to gain anything, as kernels do. The threads start with the first
    task; a copy and a forked process start their own. `words` are the workers' words of
    `foundation.handover`.
    """

    def __init__(self, count: int, words: Words | None = None) -> None:
        self.count = count
        self._rooms: list[_Room] = []
        self._process = -1
        self.words = np.zeros((count - 1) * STRIDE, np.int64) if words is None else words

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is a new one of the same size: threads cannot be copied.

        Its words are those that a task copied along with it knows.
        """
        return Workers, (self.count, self.words)

    def run(self, task: Task) -> None:
        """Do `task`. Raises what a thread raised, once nobody is at work.

        A signal's handler may raise in here at any moment, which also ends once nobody is.
        """
        if self._process != os.getpid():
            self._start()
        try:
            self._hand_out(task)
            task(0)
            self._wait()
            errors = [room.take_error() for room in self._rooms]
        except BaseException:
            self._drain()
            raise
        for error in errors:
            if error is not None:
                raise error

    def _start(self) -> None:
        self.words[:] = ASLEEP
        rooms = [_Room(worker, self.words) for worker in range(self.count - 1)]
        # Not at the process's end: what runs there later may still step, and daemons end anyway.
        weakref.finalize(self, _close, rooms, os.getpid()).atexit = False
        for room in rooms:
            threading.Thread(target=room.serve, name="aimbot-lab-worker", daemon=True).start()
        self._rooms = rooms
        self._process = os.getpid()

    def _hand_out(self, task: Task) -> None:
        if any(room.task is not task for room in self._rooms):
            self._change(task)
        asleep = post(self.words)
        if asleep:
            for room in self._rooms:
                if asleep >> room.worker & 1:
                    room.bell.put(True)

    def _change(self, task: Task) -> None:
        """Make `task` the next one, with no worker left in the one before."""
        call_out(self.words)
        for room in self._rooms:
            while not is_asleep(self.words, room.worker):
                time.sleep(0.0)
            room.task = task

    def _wait(self) -> None:
        for room in self._rooms:
            while is_at_work(self.words, room.worker):
                time.sleep(PAUSE_SECONDS)

    def _drain(self) -> None:
        """Wait until nobody is at work. What raises meanwhile is raised once that is so."""
        interrupt: BaseException | None = None
        while True:
            try:
                for room in self._rooms:
                    room.bell.put(True)  # there may be work that it was not woken for
                self._wait()
                for room in self._rooms:
                    room.take_error()
                break
            except BaseException as error:  # noqa: BLE001
                interrupt = error
        if interrupt is not None:
            raise interrupt


class _Room:
    """One worker's place: its task, its bell, and what it raised.

    As long as the worker's word is not ASLEEP, the worker is in its task or has been rung for.
    """

    def __init__(self, worker: int, words: Words) -> None:
        self.worker = worker
        self.task: Task | None = None
        self.bell: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._words = words
        self._error: BaseException | None = None

    def take_error(self) -> BaseException | None:
        """What the worker raised."""
        error, self._error = self._error, None
        return error

    def serve(self) -> None:
        """At each ring work if there is work, until the bell tells to end."""
        while self.bell.get():
            if self.task is None or is_asleep(self._words, self.worker):
                continue
            try:
                self.task(self.worker + 1)
            except BaseException as error:  # noqa: BLE001
                self._error = error
                fall_asleep(self._words, self.worker)


def _close(rooms: list[_Room], process: int) -> None:
    if process == os.getpid():  # a forked process has the rooms without their threads
        for room in rooms:
            room.task = None
            room.bell.put(False)
