"""Threads that step parts of a batch side by side."""

import threading
import weakref
from collections.abc import Callable

Part = Callable[[int], None]  # called with the number of the part


class Workers:
    """`count` parts of a task at a time: the caller does part 0, a thread each of the others.

    The parts must release the GIL to gain anything, as kernels do. A hand-over costs about ten
    microseconds, which a pool of futures would multiply.
    """

    def __init__(self, count: int) -> None:
        self._rooms = [_Room(part) for part in range(1, count)]
        for room in self._rooms:
            threading.Thread(target=room.serve, name="aimbot-lab-worker", daemon=True).start()
        weakref.finalize(self, _close, self._rooms)

    def run(self, task: Part) -> None:
        """Do every part of `task`. Raises what a part raised, once all have ended."""
        for room in self._rooms:
            room.begin(task)
        try:
            task(0)
        finally:
            errors = [room.finish() for room in self._rooms]
        for error in errors:
            if error is not None:
                raise error


class _Room:
    """One thread's work, and the two locks that hand it to and fro."""

    def __init__(self, part: int) -> None:
        self._part = part
        self._task: Part | None = None
        self._error: BaseException | None = None
        self._wanted = threading.Semaphore(0)
        self._done = threading.Semaphore(0)

    def begin(self, task: Part | None) -> None:
        self._task = task
        self._wanted.release()

    def finish(self) -> BaseException | None:
        self._done.acquire()
        error, self._error = self._error, None
        return error

    def serve(self) -> None:
        while True:
            self._wanted.acquire()
            if self._task is None:
                return
            try:
                self._task(self._part)
            except BaseException as error:  # noqa: BLE001
                self._error = error
            self._task = None
            self._done.release()


def _close(rooms: list[_Room]) -> None:
    for room in rooms:
        room.begin(None)
