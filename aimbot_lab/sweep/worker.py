"""A worker: a process that takes trials, one after the other, until none is left."""

import os
import signal
import threading
import uuid
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.garbage import collect_seldom
from aimbot_lab.foundation.named_code import TRUST
from aimbot_lab.sweep.record import SweepRecord, load
from aimbot_lab.sweep.storage import STORAGE_ERRORS, StorageAddress, open_storage, storage_error
from aimbot_lab.sweep.trial import run_trial
from aimbot_lab.sweep.trial_runs import Progress, Stage, WorkerContext
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.ownership import this_process
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
            self._leave_in_time()
        self.stopped.set()

    def _leave_in_time(self) -> None:
        # Whatever hangs: an orphaned worker must not hold its trial for ever.
        timer = threading.Timer(GRACE_SECONDS, os._exit, [1])
        timer.daemon = True
        timer.start()

    def should_stop(self) -> bool:
        """Whether the coordinator says so, or is gone."""
        return self.stopped.is_set()

    def progress(self, progress: Progress) -> None:
        """Tell where the trial stands."""
        self.say(WorkerMessage("progress", progress.stage, progress.number, progress.share))

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
    _ignore_signals(line)
    try:
        storage = open_storage(StorageAddress(arguments.storage))
        os.environ[TRUST] = arguments.trusted
        _work_through(load(storage, arguments.sweep), arguments, line)
    except (LabError, *STORAGE_ERRORS) as error:
        line.say(WorkerMessage("error", text=str(storage_error(error) or error)))
        raise SystemExit(ERROR_EXIT_CODE) from None


def _ignore_signals(line: CoordinatorLink) -> None:
    # A terminal's Ctrl-C reaches all its processes; the coordinator says what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: line.stopped.set())


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
