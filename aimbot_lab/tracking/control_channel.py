"""Requests to a training from other processes, and its answers: small files in its run folder.

Each is written under another name and renamed, so that none is ever read in part. No one waits for
the disk: after a crash of the machine no request is open.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from aimbot_lab.foundation.files import disk_error, put_file, read_bounded, read_start, swap_file

_FOLDER = "mail"
_REQUEST, _ANSWER = ".request", ".answer"
_CHANGES = "changes.jsonl"  # what was done, with its steps
MAX_BYTES = 2**22  # of a request or an answer
_PAUSE = 0.05  # seconds between two looks for an answer
LOOK_SECONDS = (
    0.1  # between two looks of a training for requests, which it has where rollouts begin
)


class ControlChannel:
    """The requests to the training that owns `run_folder`.

    `requests` looks into the folder at most every `look_seconds`, by `clock`, and has none between.
    """

    def __init__(
        self,
        run_folder: Path,
        *,
        look_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = run_folder / _FOLDER
        self._look_seconds, self._clock = look_seconds, clock
        self._look_due = -inf

    def send(self, document: Mapping[str, Any]) -> str:
        """The key of a new request. Raises StoreError where the disk refuses it."""
        key = f"{time.time_ns():020}-{uuid.uuid4().hex[:8]}"
        try:
            self._folder.mkdir(exist_ok=True)
            swap_file(self._folder / f"{key}{_REQUEST}", json.dumps(document).encode())
        except OSError as error:
            raise disk_error(self._folder, error) from error
        return key

    def requests(self) -> Sequence[tuple[str, Any]]:
        """Requests that have no answer, oldest first, each with its key; None if invalid.

        None at all where it is too soon for another look.
        """
        now = self._clock()
        if now < self._look_due:
            return ()
        self._look_due = now + self._look_seconds
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        keys = sorted(name.removesuffix(_REQUEST) for name in names if name.endswith(_REQUEST))
        return [(key, _read(self._folder / f"{key}{_REQUEST}")) for key in keys]

    def answer(self, key: str, document: Mapping[str, Any]) -> None:
        """Answer a request, which is then closed."""
        # A disk that refuses must not end a training; the request then stays without an answer.
        with suppress(OSError):
            swap_file(self._folder / f"{key}{_ANSWER}", json.dumps(document).encode())
        with suppress(OSError):
            (self._folder / f"{key}{_REQUEST}").unlink()

    def keep_change(self, step: int, document: Mapping[str, Any]) -> None:
        """Keep, for a resumption, that `document` was done at environment step `step`."""
        changes = [*self.changes(), (step, document)]
        lines = "".join(f"{json.dumps(change)}\n" for change in changes)
        # A disk that refuses must not end a training; a resumption lacks the change then.
        with suppress(OSError):
            put_file(self._folder / _CHANGES, lines.encode())

    def changes(self) -> Sequence[tuple[int, Any]]:
        """What was kept so, by rising step; nothing where that can't be read."""
        try:
            lines = read_start(self._folder / _CHANGES).decode("utf-8").splitlines()
            found = [(int(step), document) for step, document in map(json.loads, lines)]
        except (OSError, ValueError, TypeError, RecursionError):
            return []
        return sorted(found, key=lambda change: change[0])

    def wait(self, key: str, seconds: float, *, still_open: Callable[[], bool]) -> Any:
        """The answer to a request; None where none came in time or the training has ended."""
        place = self._folder / f"{key}{_ANSWER}"
        until = time.monotonic() + seconds
        while (found := _read(place)) is None and time.monotonic() < until and still_open():
            time.sleep(_PAUSE)
        if found is not None:
            with suppress(OSError):
                place.unlink()
        return found

    def withdraw(self, key: str) -> bool:
        """Whether a request was taken back before anybody read it."""
        try:
            (self._folder / f"{key}{_REQUEST}").unlink()
        except OSError:
            return False
        return True


def _read(path: Path) -> Any:
    try:
        return json.loads(read_bounded(path, MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None


LIVE_NAME = "live"


class LiveFolder(NamedTuple):
    """The folder `live` of a run's folder; it exists once the run was watched."""

    path: Path

    @classmethod
    def of(cls, run_folder: Path) -> "LiveFolder":
        """That of the run in `run_folder`."""
        return cls(run_folder / LIVE_NAME)

    @property
    def status(self) -> Path:
        """A JSON document: where the training stands."""
        return self.path / "status.json"

    @property
    def agent(self) -> Path:
        """A folder with the newest agent."""
        return self.path / "agent"
