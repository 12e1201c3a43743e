"""The workers of one coordinator: started, listened to, replaced when they die, stopped."""

import multiprocessing
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import MappingProxyType

from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.sweep.worker import ERROR_EXIT_CODE, STOP, WorkerArguments, WorkerMessage, work
from aimbot_lab.tracking.tracker import Notify

MAX_FAILED_STARTS = 3  # workers in a row that died before they were ready
# Each worker has one core: threads of its libraries would fight for it.
ONE_THREAD: Mapping[str, str] = MappingProxyType(
    {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
)


@dataclass
class _PooledWorker:
    process: SpawnProcess
    connection: Connection
    last: WorkerMessage | None = None  # that it sent
    is_open: bool = True  # whether more may come


class WorkerPool:
    """Processes that work through a sweep."""

    def __init__(self, arguments: WorkerArguments, size: int, *, notify: Notify) -> None:
        self._arguments = arguments
        self._notify = notify
        self._failed_starts = 0
        self._stopping = False
        self._workers = [_start(arguments) for _ in range(size)]

    @property
    def at_work(self) -> Mapping[tuple[str, int], float]:
        """Shares of the trials in hand that are done, by stage and number."""
        last = [worker.last for worker in self._workers if worker.last is not None]
        return {(m.stage, m.number): m.share for m in last if m.kind in ("taken", "progress")}

    @property
    def is_done(self) -> bool:
        """Whether all have gone."""
        return not self._workers

    @property
    def pids(self) -> list[int]:
        """The processes' numbers."""
        return [worker.process.pid or 0 for worker in self._workers]

    def listen(self, seconds: float) -> None:
        """Take in what the workers say for at most `seconds`; replace those that died.

        Raises StoreError for an error that the others would meet too.
        """
        connections = [worker.connection for worker in self._workers if worker.is_open]
        ends = [worker.process.sentinel for worker in self._workers]
        wait([*connections, *ends], seconds)
        for worker in list(self._workers):
            self._receive(worker)
            if not worker.process.is_alive():
                self._receive(worker)
                self._remove_dead(worker)

    def stop(self) -> None:
        """Have every worker leave its trial for later once its update is done."""
        self._stopping = True
        for worker in self._workers:
            try:
                worker.connection.send(STOP)
            except OSError:
                worker.is_open = False

    def kill(self) -> None:
        """End every worker at once."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
        self._workers = []

    def _receive(self, worker: _PooledWorker) -> None:
        was_silent = worker.last is None
        _read(worker)
        if was_silent and worker.last is not None:
            self._failed_starts = 0  # workers can start, so those before it had their own reasons

    def _remove_dead(self, worker: _PooledWorker) -> None:
        self._workers.remove(worker)
        worker.process.join()
        worker.connection.close()
        code, last = worker.process.exitcode, worker.last
        if code == 0:
            return
        if code == ERROR_EXIT_CODE and last is not None and last.kind == "error":
            raise StoreError(last.text)
        had = last is not None and last.kind in ("taken", "progress")
        lost = f"; its trial {last.number} is picked up again" if had and last else ""
        self._notify(f"a worker died ({_cause(code)}){lost}")
        self._failed_starts += last is None
        if self._failed_starts >= MAX_FAILED_STARTS:
            raise LabError(f"workers die before they are ready ({_cause(code)})")
        if not self._stopping:
            self._workers.append(_start(self._arguments))


def _start(arguments: WorkerArguments) -> _PooledWorker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, arguments), daemon=True)
    with _environment(ONE_THREAD):
        process.start()
    theirs.close()
    return _PooledWorker(process, ours)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _read(worker: _PooledWorker) -> None:
    try:
        while worker.is_open and worker.connection.poll():
            worker.last = worker.connection.recv()
    except (EOFError, OSError):
        worker.is_open = False


def _cause(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
