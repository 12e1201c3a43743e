"""What the panel asks of a run that somebody watches at play, in a process of its own.

`python -m aimbot_lab.bench.panel.watcher FOLDER` goes on until its standard input is closed; it
writes a line once the first request lies in the run's FOLDER.
"""

import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from aimbot_lab.tracking.runs.control_channel import ControlChannel
from aimbot_lab.tracking.runs.live_folder import LiveFolder

WATCH_SECONDS, RENEW_SECONDS = 15.0, 5.0  # as the panel's: for which a request holds, between two
LOOK_SECONDS = 0.25  # between two looks at the state
REQUEST = {"kind": "watch", "seconds": WATCH_SECONDS, "agent": True}


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


def main() -> None:
    """Watch the run whose folder is named until standard input is closed."""
    watcher = Watcher(Path(sys.argv[1]))
    sys.stdout.write("watching\n")
    sys.stdout.flush()
    parent = threading.Thread(target=sys.stdin.read, daemon=True)
    parent.start()
    while parent.is_alive():
        watcher.look()
        parent.join(LOOK_SECONDS)


if __name__ == "__main__":
    main()
