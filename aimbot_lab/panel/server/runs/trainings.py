"""Trainings that are started from the page: ordinary processes, which outlive the panel."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType

import psutil
from pydantic import TypeAdapter

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.panel.server.documents import read_document
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.durable import put_file
from aimbot_lab.tracking.runs.run_folder import living_folders

FOLDER, STATE_NAME, LOG_NAME = "panel", "started.json", "training.log"
PROGRAM = (sys.executable, "-P", "-m", "aimbot_lab")
LAST_BYTES = 4096  # of what a process said


@dataclass(frozen=True)
class Started:
    """The training that was started last."""

    title: str
    pid: int
    created: float  # when the process was, s since 1970
    begun_ms: int
    run_id: str | None = None  # once it has one
    alive: bool = True
    last_words: str = ""  # of one that has ended without a run, or failed


class Trainings:
    """The training of this panel: there is one at a time, also after the panel began anew.

    `program` is what runs `aimbot-lab`, with variables of `environment` beside this process's.
    """

    def __init__(
        self,
        data_folder: DataFolder,
        *,
        here: Path,
        tracking_uri: str | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._data_folder, self._here, self._tracking_uri = data_folder, here, tracking_uri
        self._folder = data_folder.root / FOLDER
        self._started = self._remembered()
        self._environment = environment
        self.program: Sequence[str] = PROGRAM

    def look(self) -> Started | None:
        """The training that was started last, as it is now."""
        if self._started is None or not self._started.alive:
            return self._started
        found = replace(self._started, alive=self._lives(self._started))
        if found.run_id is None:
            living = living_folders(self._data_folder)
            ids = (one.run_id for one in living if one.owner.pid == found.pid)
            found = replace(found, run_id=next((one for one in ids if one), None))
        if not found.alive:
            found = replace(found, last_words=self._last_words())
        self._keep(found)
        return found

    def start(self, words: Sequence[str], *, title: str, run_id: str | None = None) -> Started:
        """Start `aimbot-lab` with `words`; `run_id` is that of a run that is resumed.

        Raises ConfigurationError where one trains already.
        """
        before = self.look()
        if before is not None and before.alive:
            raise ConfigurationError(f"{before.title} still trains; stop it first")
        self._data_folder.create()
        self._folder.mkdir(exist_ok=True)
        place = ["--data-dir", str(self._data_folder.root)]
        place += [] if self._tracking_uri is None else ["--tracking-uri", self._tracking_uri]
        with (self._folder / LOG_NAME).open("wb") as log:
            process = subprocess.Popen(
                [*self.program, *words, *place],
                cwd=self._here,
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # closing the panel leaves it running
            )
        created = psutil.Process(process.pid).create_time()
        threading.Thread(target=process.wait, daemon=True).start()  # which leaves no zombie
        now_ms = time.time_ns() // 1_000_000
        self._keep(started := Started(title, process.pid, created, now_ms, run_id))
        return started

    def _lives(self, started: Started) -> bool:
        with suppress(psutil.Error, ValueError, OverflowError):  # no process can have such a number
            process = psutil.Process(started.pid)
            same = abs(process.create_time() - started.created) < 1.0
            return same and process.status() != psutil.STATUS_ZOMBIE
        return False

    def _last_words(self) -> str:
        with suppress(OSError), (self._folder / LOG_NAME).open("rb") as log:
            log.seek(max(log.seek(0, 2) - LAST_BYTES, 0))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
            return "\n".join(lines[-6:])
        return ""

    def _keep(self, started: Started) -> None:
        if started == self._started:
            return
        self._started = started
        with suppress(OSError):
            put_file(self._folder / STATE_NAME, json.dumps(asdict(started)).encode())

    def _remembered(self) -> Started | None:
        with suppress(LabError):
            found = read_document(self._folder / STATE_NAME, _STARTED)
            return found if found.alive else None
        return None


_STARTED = TypeAdapter(Started)
