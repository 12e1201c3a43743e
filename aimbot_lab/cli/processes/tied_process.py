"""A process that ends when the one that started it does, however that ends.

`python -m aimbot_lab.cli.processes.tied_process COMMAND...` runs COMMAND, and ends the whole
group once its standard input is closed: the starter holds the other end, and the kernel closes it
even after `kill -9`.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

SECONDS_TO_END = 5.0  # between the asking and the killing


def tied(arguments: Sequence[str]) -> list[str]:
    """What runs `arguments` tied to the end of its standard input; it leads a group of its own."""
    return [sys.executable, "-P", "-m", "aimbot_lab.cli.processes.tied_process", *arguments]


def main() -> int:
    """The exit code of the command in `sys.argv`."""
    # Not ignored, which the command would inherit: who ends the group waits for all of it.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    threading.Thread(target=_watch, daemon=True).start()
    code = subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL)
    return code if code >= 0 else 128 - code


def _watch() -> None:
    """End the group once the starter is gone."""
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(SECONDS_TO_END)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
