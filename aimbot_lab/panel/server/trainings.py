"""Trainings that are started from the page: ordinary processes, which outlive the panel."""

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType

import psutil
from pydantic import TypeAdapter

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.panel.server.loading import STORE, Loader
from aimbot_lab.panel.server.messages import read_document
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.durable import exclusive, put_file
from aimbot_lab.tracking.run_folder import living_folders

FOLDER, STATE_NAME, LOG_NAME, LOCK_NAME = "panel", "started.json", "training.log", "start.lock"
PROGRAM = (sys.executable, "-P", "-m", "aimbot_lab")
LAST_BYTES = 4096  # of what a process said
TAG = "panel.start"  # of a run that a page started: the key of its start


@dataclass(frozen=True)
class Started:
    """The training that was started last."""

    title: str
    pid: int
    created: float  # when the process was, s since 1970
    begun_ms: int
    key: str = ""  # its run's tag `TAG`; empty: the run was there before
    run_id: str | None = None  # once it has one
    alive: bool = True
    last_words: str = ""  # of one that has ended without a run, or failed
    fault: str = ""  # why it is not known whether one that has ended has a run


class Trainings:
    """The training of this data folder's panels: there is one at a time.

    It is found again by a panel that began after it, and by one that did not look while it
    trained. `program` is what runs `aimbot-lab`, with variables of `environment` beside this
    process's.
    """

    def __init__(
        self,
        data_folder: DataFolder,
        *,
        here: Path,
        loader: Loader,
        tracking_uri: str | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._data_folder, self._here, self._tracking_uri = data_folder, here, tracking_uri
        self._folder = data_folder.root / FOLDER
        self._loader = loader
        self._started: Started | None = None
        self._environment = environment
        self.program: Sequence[str] = PROGRAM

    def look(self) -> Started | None:
        """The training that was started last, as it is now."""
        before = self._noted()
        if before is None or not (before.alive or before.fault):
            return before
        found = replace(before, alive=_lives(before), fault="")
        if found.run_id is None:
            found = self._with_run(found)
        if not found.alive:
            found = replace(found, last_words=self._last_words())
        with suppress(LabError), exclusive(self._folder / LOCK_NAME):
            if self._noted() == before:  # and no other was started meanwhile
                self._keep(found)
        return found

    def start(self, words: Sequence[str], *, title: str, run_id: str | None = None) -> Started:
        """Start `aimbot-lab` with `words`; `run_id` is that of a run that is resumed.

        Raises ConfigurationError where one trains already.
        """
        self._data_folder.create()
        self._folder.mkdir(exist_ok=True)
        place = ["--data-dir", str(self._data_folder.root)]
        place += [] if self._tracking_uri is None else ["--tracking-uri", self._tracking_uri]
        key = "" if run_id else uuid.uuid4().hex
        place += ["--tag", f"{TAG}={key}"] if key else []
        with exclusive(self._folder / LOCK_NAME):
            before = self._noted()
            if before is not None and before.alive and _lives(before):
                raise ConfigurationError(f"{before.title} still trains; stop it first")
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
            now_ms = time.time_ns() // 1_000_000
            self._keep(started := Started(title, process.pid, created, now_ms, key, run_id))
        threading.Thread(target=process.wait, daemon=True).start()  # which leaves no zombie
        return started

    def _with_run(self, started: Started) -> Started:
        """`started` with its run: from the data folder while it lives, then from the store."""
        if started.alive:
            living = living_folders(self._data_folder)
            ids = (one.run_id for one in living if one.owner.pid == started.pid)
            return replace(started, run_id=next((one for one in ids if one), None))
        if not started.key:  # of an older version
            return started
        from aimbot_lab.tracking.history import list_runs

        try:
            self._loader.need(*STORE)
            found = list_runs(
                self._data_folder,
                tracking_uri=self._tracking_uri,
                condition=f"tags.`{TAG}` = '{started.key}'",
            )
        except LabError as error:
            return replace(started, fault=str(error))
        return replace(started, run_id=found[0].run_id if found else None)

    def _last_words(self) -> str:
        with suppress(OSError), (self._folder / LOG_NAME).open("rb") as log:
            log.seek(max(log.seek(0, 2) - LAST_BYTES, 0))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
            return "\n".join(lines[-6:])
        return ""

    def _noted(self) -> Started | None:
        """What a panel of this data folder noted last; None: nothing, or what ended before us."""
        noted, own = None, self._started
        with suppress(LabError):
            noted = read_document(self._folder / STATE_NAME, _STARTED)
        if noted is None or (own is None and not (noted.alive or noted.fault)):
            return own
        # One that the disk refused to note is later than what it has.
        return noted if own is None or noted.begun_ms >= own.begun_ms else own

    def _keep(self, found: Started) -> None:
        if found == self._started:
            return
        self._started = found
        with suppress(OSError):
            put_file(self._folder / STATE_NAME, json.dumps(asdict(found)).encode())


def _lives(started: Started) -> bool:
    with suppress(psutil.Error, ValueError, OverflowError):  # no process can have such a number
        process = psutil.Process(started.pid)
        same = abs(process.create_time() - started.created) < 1.0
        return same and process.status() != psutil.STATUS_ZOMBIE
    return False


_STARTED = TypeAdapter(Started)
