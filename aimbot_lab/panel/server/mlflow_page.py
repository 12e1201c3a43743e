"""MLflow's page for the curves of a run: started when it is first wanted, ended with the panel."""

import asyncio
import socket
import subprocess
import sys
import time

from aimbot_lab.experiment.runs.run_record import close_orphan_runs
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.panel.server.loading import STORE, Loader, in_thread
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.ui import UiCommand, page_of, ui_command

WAIT_SECONDS = 90.0  # for the page to answer, the first time
PAUSE = 0.25
HOST = "127.0.0.1"


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
        from aimbot_lab.tracking.address import choose_address
        from aimbot_lab.tracking.runs.history import read_run

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
