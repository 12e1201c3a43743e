"""Threads that work on one task side by side."""

import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from aimbot_lab.foundation.kernels.atomic import SyncFlags
from aimbot_lab.foundation.kernels.packed import PackedCall
from aimbot_lab.foundation.kernels.spin_sync import (
    ASLEEP,
    STRIDE,
    WorkQueue,
    call_out,
    fall_asleep,
    is_asleep,
    is_at_work,
    post,
)
from aimbot_lab.foundation.world import StepBuffers

PAUSE_SECONDS = 5e-5  # between two checks of a worker that other processes keep from working


class Task(Protocol):
    """Work that several threads share."""

    def __call__(self, thread_id: int, /) -> None:
        """Work as thread `thread_id`: 0 the caller, k + 1 worker k.

        The caller returns when the work is done or others are at the rest of it, a worker when it
        has looked out in vain for more (see `foundation.kernels.spin_sync`).
        """


class ThreadPool:
    """The caller and `count` - 1 threads that work on a task together.

    A task must release the GIL to gain anything, as kernels do. The threads start with the first
    task; a copy and a forked process start their own. `sync_flags` are the workers' flags of
    `foundation.kernels.spin_sync`.
    """

    def __init__(self, count: int, sync_flags: SyncFlags | None = None) -> None:
        self.count = count
        self._workers: list[_Worker] = []
        self._process = -1
        self.sync_flags = (
            np.zeros((count - 1) * STRIDE, np.int64) if sync_flags is None else sync_flags
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is a new one of the same size: threads cannot be copied.

        Its flags are those that a task copied along with it knows.
        """
        return ThreadPool, (self.count, self.sync_flags)

    def run(self, task: Task) -> None:
        """Do `task`. Raises what a thread raised, once all threads have ended it.

        A signal's handler may raise in here at any moment, which also ends only then.
        """
        if self.count == 1:
            task(0)
            return
        if self._process != os.getpid():
            self._start()
        try:
            self._hand_out(task)
            task(0)
            self._wait()
            errors = [worker.take_error() for worker in self._workers]
        except BaseException:
            self._drain()
            raise
        for error in errors:
            if error is not None:
                raise error

    def _start(self) -> None:
        self.sync_flags[:] = ASLEEP
        workers = [_Worker(worker, self.sync_flags) for worker in range(self.count - 1)]
        # Not at the process's end: what runs there later may still step, and daemons end anyway.
        weakref.finalize(self, _close, workers, os.getpid()).atexit = False
        for worker in workers:
            threading.Thread(target=worker.serve, name="aimbot-lab-worker", daemon=True).start()
        self._workers = workers
        self._process = os.getpid()

    def _hand_out(self, task: Task) -> None:
        if any(worker.task is not task for worker in self._workers):
            self._change(task)
        asleep = post(self.sync_flags)
        if asleep:
            for worker in self._workers:
                if asleep >> worker.index & 1:
                    worker.wake.put(True)

    def _change(self, task: Task) -> None:
        """Make `task` the next one, with no worker left in the one before."""
        call_out(self.sync_flags)
        for worker in self._workers:
            while not is_asleep(self.sync_flags, worker.index):
                time.sleep(0.0)
            worker.task = task

    def _wait(self) -> None:
        for worker in self._workers:
            while is_at_work(self.sync_flags, worker.index):
                time.sleep(PAUSE_SECONDS)

    def _drain(self) -> None:
        """Wait until all threads rest. What raises meanwhile is raised then."""
        interrupt: BaseException | None = None
        while True:
            try:
                for worker in self._workers:
                    worker.wake.put(True)  # there may be work that it was not woken for
                self._wait()
                for worker in self._workers:
                    worker.take_error()
                break
            except BaseException as error:  # noqa: BLE001
                interrupt = error
        if interrupt is not None:
            raise interrupt


class _Worker:
    """One worker: its task, what wakes it, and what it raised.

    As long as the worker's flag is not ASLEEP, the worker is in its task or was woken for it.
    """

    def __init__(self, index: int, sync_flags: SyncFlags) -> None:
        self.index = index
        self.task: Task | None = None
        self.wake: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._sync_flags = sync_flags
        self._error: BaseException | None = None

    def take_error(self) -> BaseException | None:
        """What the worker raised."""
        error, self._error = self._error, None
        return error

    def serve(self) -> None:
        """Work whenever woken for work, until asked to end."""
        while self.wake.get():
            if self.task is None or is_asleep(self._sync_flags, self.index):
                continue
            try:
                self.task(self.index + 1)
            except BaseException as error:  # noqa: BLE001
                self._error = error
                fall_asleep(self._sync_flags, self.index)


def _close(workers: list[_Worker], process: int) -> None:
    if process == os.getpid():  # a forked process has the workers without their threads
        for worker in workers:
            worker.task = None
            worker.wake.put(False)


class StepTask(NamedTuple):
    """Steps the rows, begins the next episodes, or both, as its turns say.

    It knows two buffers, because callers use two by turns; `fits` says which comes next. It
    must not know the world: a worker may hold it while the world goes. `tables` are the
    world's own, by which it knows whether the task still fits.
    """

    tables: Any
    buffers: tuple[StepBuffers, StepBuffers]
    queue: WorkQueue
    calls: tuple[PackedCall, ...]  # the world's kernel as each thread calls it

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for more work."""
        self.calls[thread_id]()

    def fits(self, tables: Any, buffers: StepBuffers) -> bool:
        """Set the next step to write `buffers`; False where they or the tables are others."""
        if tables is not self.tables:
            return False
        for index, known in enumerate(self.buffers):
            if known is buffers:
                self.queue.buffers[0] = index
                return True
        return False

    def begin_work(self, duty: int) -> None:
        """Set the next work to `duty` on every row."""
        self.queue.duty[0] = duty
        self.queue.taken.fill(0)


Calls = Callable[[tuple[StepBuffers, StepBuffers]], tuple[PackedCall, ...]]
"""What each thread calls to write such a pair of buffers."""


def next_task(
    last: StepTask | None, tables: Any, buffers: StepBuffers, *, queue: WorkQueue, calls: Calls
) -> StepTask:
    """What steps into `buffers` and those that the `last` task wrote."""
    pair = buffers, buffers if last is None else last.buffers[queue.buffers[0]]
    queue.buffers[0] = 0
    return StepTask(tables, buffers=pair, queue=queue, calls=calls(pair))
