"""A worker: a process that takes trials, one after the other, until none is left."""

import multiprocessing
import os
import signal
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.foundation.garbage import collect_seldom
from aimbot_lab.foundation.named_code import TRUST
from aimbot_lab.sweep.record import SweepRecord, load
from aimbot_lab.sweep.storage import STORAGE_ERRORS, StorageAddress, open_storage, storage_error
from aimbot_lab.sweep.trial import run_trial
from aimbot_lab.sweep.trial_runs import Stage, WorkerContext
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import this_process
from aimbot_lab.tracking.tracker import Notify
from aimbot_lab.version import code_hash

STOP = "stop"  # what the coordinator says to a worker
ERROR_EXIT_CODE = 3  # exit code after an error that was reported
PAUSE_SECONDS = 0.2  # between two looks for a trial
GRACE_SECONDS = 120.0  # for the present update to end, once no coordinator waits for it


@dataclass(frozen=True)
class WorkerArguments:
    """What a worker is to work on."""

    storage: str
    sweep: str
    data_folder: Path
    tracking_uri: str | None
    code: str = field(default_factory=code_hash)  # of the coordinator
    trusted: str = field(default_factory=lambda: os.environ.get(TRUST, ""))  # what it may run


class WorkerMessage(NamedTuple):
    """What a worker says to its coordinator."""

    kind: Literal["ready", "taken", "progress", "left", "error"]
    stage: str = ""
    number: int = -1
    share: float = 0.0
    text: str = ""


class CoordinatorLink:
    """The connection to the coordinator. That it ends says that the coordinator is dead."""

    def __init__(self, connection: Connection) -> None:
        self.stopped = threading.Event()
        self._connection = connection
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            self._connection.recv()
        except (EOFError, OSError):
            # Whatever hangs: an orphaned worker must not hold its trial for ever.
            timer = threading.Timer(GRACE_SECONDS, os._exit, [1])
            timer.daemon = True
            timer.start()
        self.stopped.set()

    def should_stop(self) -> bool:
        """Whether the coordinator says so, or is gone."""
        return self.stopped.is_set()

    def progress(self, stage: Stage, number: int, share: float) -> None:
        """Tell where the trial stands."""
        self.say(WorkerMessage("progress", stage, number, share))

    def say(self, message: WorkerMessage) -> None:
        """Tell the coordinator, if it is there."""
        try:
            self._connection.send(message)
        except OSError:
            self.stopped.set()


def work(connection: Connection, arguments: WorkerArguments) -> None:
    """Work until every trial has ended, or the coordinator says so or dies."""
    collect_seldom()
    line = CoordinatorLink(connection)
    # A terminal's Ctrl-C reaches all its processes; the coordinator says what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: line.stopped.set())
    try:
        storage = open_storage(StorageAddress(arguments.storage))
        os.environ[TRUST] = arguments.trusted
        _work_through(load(storage, arguments.sweep), arguments, line)
    except (LabError, *STORAGE_ERRORS) as error:
        line.say(WorkerMessage("error", text=str(storage_error(error) or error)))
        raise SystemExit(ERROR_EXIT_CODE) from None


def _work_through(record: SweepRecord, arguments: WorkerArguments, line: CoordinatorLink) -> None:
    # Here, because torch takes its time to load: the process is known to live before.
    context = WorkerContext(record, DataFolder(arguments.data_folder), arguments.tracking_uri, line)
    line.say(WorkerMessage("ready"))
    stages: tuple[Stage, ...] = ("search", "confirm")
    for stage in stages:
        queue = record.search_queue() if stage == "search" else record.confirm_queue()
        while queue is not None and not queue.is_done():
            if line.should_stop():
                return
            claim = queue.take(this_process(uuid.uuid4().hex, None))
            if claim is None:
                line.stopped.wait(PAUSE_SECONDS)
                continue
            line.say(WorkerMessage("taken", stage, claim.number))
            run_trial(context, queue, claim, stage)
            line.say(WorkerMessage("left", stage, claim.number))


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
        try:
            while worker.is_open and worker.connection.poll():
                worker.last = worker.connection.recv()
        except (EOFError, OSError):
            worker.is_open = False
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


def _cause(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
