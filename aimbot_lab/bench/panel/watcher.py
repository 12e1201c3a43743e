"""What the panel asks of a run that somebody watches at play, in a process of its own.

`python -m aimbot_lab.bench.panel.watcher FOLDER` writes a line once it is there. It watches the run
in FOLDER from each WATCH to the next REST that it reads, until its standard input is closed.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.tracking.runs.control_channel import ControlChannel
from aimbot_lab.tracking.runs.live_folder import LiveFolder

WATCH_SECONDS, RENEW_SECONDS = 15.0, 5.0  # as the panel's: for which a request holds, between two
LOOK_SECONDS = 0.25  # between two looks at the state
REQUEST = {"kind": "watch", "seconds": WATCH_SECONDS, "agent": True}
WATCH, REST = b"w", b"r"
STANDARD_INPUT = 0


class Watcher:
    """Requests and looks, for as long as `look` is called."""

    def __init__(self, run_folder: Path) -> None:
        self._channel, self._live = ControlChannel(run_folder), LiveFolder.of(run_folder)
        self._key = self._channel.send(REQUEST)
        self._renewed = time.monotonic()

    def look(self) -> bytes:
        """The state that the run shows; empty: none yet. Requests are renewed where it is time."""
        self._channel.wait(self._key, 0.0, still_open=lambda: True)
        if time.monotonic() - self._renewed >= RENEW_SECONDS:
            self._renewed = time.monotonic()
            self._key = self._channel.send(REQUEST)
        with suppress(OSError):
            return self._live.status.read_bytes()
        return b""


class WatcherProcess:
    """A process that watches by turns."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def turn(self, watched: bool) -> None:
        """Have it watch, or rest."""
        assert self._process.stdin is not None
        self._process.stdin.write(WATCH if watched else REST)
        self._process.stdin.flush()


@contextmanager
def watcher_process(folder: Path) -> Iterator[WatcherProcess]:
    """One for the run in `folder`, which rests. Raises LabError where it does not begin."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        if not process.stdout.readline():
            raise LabError("the process that watches did not begin")
        try:
            yield WatcherProcess(process)
        finally:
            process.stdin.close()


def main() -> None:
    """Watch the run whose folder is named, by turns, until standard input is closed."""
    watcher: Watcher | None = None
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        wait = None if watcher is None else LOOK_SECONDS
        if select.select([STANDARD_INPUT], [], [], wait)[0]:
            told = os.read(STANDARD_INPUT, 64)
            if not told:
                return
            watcher = Watcher(Path(sys.argv[1])) if told.endswith(WATCH) else None
        elif watcher is not None:
            watcher.look()


if __name__ == "__main__":
    main()
