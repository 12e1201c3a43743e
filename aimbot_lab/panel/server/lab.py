"""What all pages share: where the runs are, and what is looked up for them."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from aimbot_lab.experiment.runs.run_record import close_orphan_runs, noted_in, read_record
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.named_code import TRUST, NamedCode, is_allowed
from aimbot_lab.panel.server.loading import STORE, Feed, Loader, in_thread
from aimbot_lab.panel.server.replays import ReplayList
from aimbot_lab.panel.server.run_list import Listed, LiveRun, RunList
from aimbot_lab.panel.server.sweeps import Sweeps
from aimbot_lab.panel.server.trainings import Curricula, Started, Trainings
from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import read_run
from aimbot_lab.tracking.run_folder import running_run
from aimbot_lab.tracking.ui import UiCommand, page_of, ui_command

WAIT_SECONDS = 90.0  # for the page to answer, the first time
PAUSE = 0.25
HOST = "127.0.0.1"

MAX_KEPT = 16  # plays of runs, which hold networks, and reports
Kept = TypeVar("Kept")
MAX_FEEDS = 64  # runs that are looked at in turn before the first are forgotten


class MlflowPage:
    """Where a browser finds the runs of a data folder in MLflow."""

    def __init__(
        self, data_folder: DataFolder, *, tracking_uri: str | None, loader: Loader
    ) -> None:
        self._loader = loader
        self._data_folder, self._tracking_uri = data_folder, tracking_uri
        self._process: subprocess.Popen[bytes] | None = None
        self._command: UiCommand | None = None
        self._starting = asyncio.Lock()

    async def address_of(self, run_id: str) -> str:
        """Where the run's own page is. Raises LabError where there is none."""
        part, server = await in_thread(self._part_of, run_id)
        if server is not None:
            return server + part
        async with self._starting:
            if self._command is None or self._has_ended():
                self._command = await in_thread(self._start)
            until = time.monotonic() + WAIT_SECONDS
            while not await in_thread(self._command.answers):
                if self._has_ended() or time.monotonic() > until:
                    raise LabError("MLflow's page did not start: aimbot-lab ui says why")
                await asyncio.sleep(PAUSE)
        return self._command.address + part

    def _part_of(self, run_id: str) -> tuple[str, str | None]:
        """The run's part of the page, and the address of a server that has its own page."""
        self._loader.need(*STORE)
        found = read_run(self._data_folder, run_id, tracking_uri=self._tracking_uri)
        address = choose_address(self._data_folder, explicit=self._tracking_uri)
        return page_of([found]), address.shown.rstrip("/") if address.is_server else None

    def _start(self) -> UiCommand:
        close_orphan_runs(self._data_folder)
        with socket.socket() as free:
            free.bind((HOST, 0))
            port = free.getsockname()[1]
        command = ui_command(
            self._data_folder, tracking_uri=self._tracking_uri, host=HOST, port=port
        )
        tied = "aimbot_lab.cli.tied_process"  # it ends when the pipe below is closed
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", tied, *command.arguments],
            env=dict(command.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return command

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None


class Lab:
    """The runs of a data folder, seen from the folder in which the panel was started.

    This process runs no code that files name. What the user trusts (the value of TRUST) may run in
    processes that are started from here.
    """

    def __init__(
        self, data_folder: DataFolder, *, here: Path, tracking_uri: str | None = None
    ) -> None:
        self.data_folder, self.here, self.tracking_uri = data_folder, here, tracking_uri
        self._trusted = os.environ.pop(TRUST, "")
        self.loader = Loader()
        self._kept: dict[str, Any] = {}
        self._live: dict[str, tuple[LiveRun, Feed[dict[str, Any]]]] = {}

    @cached_property
    def run_list(self) -> RunList:
        """The runs that are here: those that train, and others."""
        return RunList(self.data_folder, tracking_uri=self.tracking_uri, loader=self.loader)

    @cached_property
    def runs(self) -> Feed[Listed]:
        """The same, looked up while a page wants them."""
        return Feed(self.run_list.listed, seconds=1.0)

    @cached_property
    def curricula(self) -> Curricula:
        """What can be trained."""
        return Curricula(self.here)

    @cached_property
    def trainings(self) -> Trainings:
        """What pages have started."""
        return Trainings(
            self.data_folder,
            here=self.here,
            loader=self.loader,
            tracking_uri=self.tracking_uri,
            environment={TRUST: self._trusted},
        )

    @cached_property
    def started(self) -> Feed[Started | None]:
        """The training that was started last, looked up while a page wants it."""

        async def look() -> Started | None:
            return await in_thread(self.trainings.look)

        return Feed(look, seconds=0.5)

    @cached_property
    def replays(self) -> ReplayList:
        """Recorded episodes."""
        uri = self.tracking_uri
        return ReplayList(self.data_folder, here=self.here, tracking_uri=uri, loader=self.loader)

    @cached_property
    def sweeps(self) -> Sweeps:
        """Searches."""
        return Sweeps(self.data_folder, self.loader)

    @cached_property
    def mlflow(self) -> MlflowPage:
        """MLflow's page."""
        uri = self.tracking_uri
        return MlflowPage(self.data_folder, tracking_uri=uri, loader=self.loader)

    def may_run(self, code: NamedCode) -> bool:
        """Whether `code` may run in a process of its own."""
        return is_allowed(code, trusted=self._trusted) or noted_in(self.data_folder)(code)

    def find(self, run: str) -> str:
        """The id of the run that is meant by its id, the beginning of it, or "latest".

        One that trains here counts before all others. Raises ConfigurationError where no run or
        more than one is meant.
        """
        from aimbot_lab.tracking.history import find_run

        with suppress(ConfigurationError):
            return str(running_run(self.data_folder, run).run_id)
        return find_run(self.data_folder, run, tracking_uri=self.tracking_uri).run_id

    def more_steps(self, run_id: str) -> list[str]:
        """Words that give a run whose steps are spent as many again."""
        folder = self.run_list.find(run_id)
        record = None if folder is None else read_record(folder.checkpoints)
        spent = None if record is None else record.spent_steps
        return [] if not spent else ["--set", f"train.total_steps={2 * spent}"]

    def live_run(self, run_id: str) -> LiveRun:
        """A run, whether it trains or not. Raises LabError for an unknown id."""
        return self._watched(run_id)[0]

    def feed_of(self, run_id: str) -> Feed[dict[str, Any]]:
        """How that run stands, as long as a page watches."""
        return self._watched(run_id)[1]

    def kept(self, key: str, make: Callable[[], Kept]) -> Kept:
        """What was made under `key`, made now if need be; those used last are kept."""
        found: Kept = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = found
        while len(self._kept) > MAX_KEPT:
            self._kept.pop(next(iter(self._kept)))
        return found

    def _watched(self, run_id: str) -> tuple[LiveRun, Feed[dict[str, Any]]]:
        if run_id not in self._live:
            run = LiveRun(self.run_list, run_id)
            while len(self._live) >= MAX_FEEDS:
                self._live.pop(next(iter(self._live)))
            self._live[run_id] = run, Feed(run.look, seconds=0.25)
        return self._live[run_id]
