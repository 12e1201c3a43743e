"""A worker: a process that takes trials, one after the other, until none is left."""

import os
import signal
import threading
import uuid
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.sweep.record import Record, load
from aimbot_lab.sweep.storage import TROUBLES, StorageAddress, open_storage, storage_trouble
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.owner import this_process

if TYPE_CHECKING:
    from aimbot_lab.sweep.worker_context import Progress

STOP = "stop"  # what the coordinator says to a worker
TROUBLE_CODE = 3  # exit code after a trouble that was told
PAUSE_SECONDS = 0.2  # between two looks for a trial
GRACE_SECONDS = 120.0  # for the present update to end, once nobody is there to wait for it


@dataclass(frozen=True)
class Order:
    """What a worker is to work on."""

    storage: str
    sweep: str
    data_folder: Path
    tracking_uri: str | None


class Message(NamedTuple):
    """What a worker says to its coordinator."""

    kind: Literal["ready", "taken", "progress", "left", "trouble"]
    stage: str = ""
    number: int = -1
    share: float = 0.0
    text: str = ""


class Line:
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
        # Whatever hangs: a worker that nobody waits for must not hold its trial for ever.
        timer = threading.Timer(GRACE_SECONDS, os._exit, [1])
        timer.daemon = True
        timer.start()

    def should_stop(self) -> bool:
        """Whether the coordinator says so, or is gone."""
        return self.stopped.is_set()

    def progress(self, progress: "Progress") -> None:
        """Tell where the trial stands."""
        self.say(Message("progress", progress.stage, progress.number, progress.share))

    def say(self, message: Message) -> None:
        """Tell the coordinator, if it is there."""
        try:
            self._connection.send(message)
        except OSError:
            self.stopped.set()


def work(connection: Connection, order: Order) -> None:
    """Work until every trial has ended, or the coordinator says so or dies."""
    line = Line(connection)
    _heed_signals(line)
    try:
        storage = open_storage(StorageAddress(order.storage))
        _work_through(load(storage, order.sweep), order, line)
    except (LabError, *TROUBLES) as error:
        line.say(Message("trouble", text=str(storage_trouble(error) or error)))
        raise SystemExit(TROUBLE_CODE) from None


def _heed_signals(line: Line) -> None:
    # A terminal's Ctrl-C reaches all its processes; the coordinator tells what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: line.stopped.set())


def _work_through(record: Record, order: Order, line: Line) -> None:
    # Here, because torch takes its time to load: the process is known to live before.
    from aimbot_lab.sweep.trial import run_trial
    from aimbot_lab.sweep.worker_context import Stage, WorkerContext

    context = WorkerContext(record, DataFolder(order.data_folder), order.tracking_uri, line)
    line.say(Message("ready"))
    stages: tuple[Stage, ...] = ("search", "confirm")
    for stage in stages:
        queue = record.search_board() if stage == "search" else record.confirm_board()
        while queue is not None and not queue.is_done():
            if line.should_stop():
                return
            claim = queue.take(this_process(uuid.uuid4().hex, None))
            if claim is None:
                line.stopped.wait(PAUSE_SECONDS)
                continue
            line.say(Message("taken", stage, claim.number))
            run_trial(context, queue, claim, stage)
            line.say(Message("left", stage, claim.number))
