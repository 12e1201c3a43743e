"""A process that ends when the one that started it does, however that ends.

`python -m aimbot_lab.cli.tied_process COMMAND...` runs COMMAND, and ends the whole group once its
standard input is closed: the starter holds the other end and never writes, and the kernel closes it
even after `kill -9`.

`python -m aimbot_lab.cli.tied_process --lab run FILE ...` is `aimbot-lab run FILE ...`, which then
gets SIGTERM: a training stops and saves, and nothing is killed later.
"""

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

SECONDS_TO_END = 5.0  # between the asking and the killing
LAB = "--lab"


def tied(arguments: Sequence[str]) -> list[str]:
    """What runs `arguments` tied to the end of its standard input; it leads a group of its own."""
    return [sys.executable, "-P", "-m", "aimbot_lab.cli.tied_process", *arguments]


def tied_lab(words: Sequence[str]) -> list[str]:
    """What runs `aimbot-lab` with `words`, tied to the end of its standard input."""
    return [sys.executable, "-m", "aimbot_lab.cli.tied_process", LAB, *words]


def main() -> int:
    """The exit code of the command in `sys.argv`."""
    if sys.argv[1:2] == [LAB]:
        del sys.argv[1]
        _at_the_end_of_stdin(lambda: os.kill(os.getpid(), signal.SIGTERM))
        runpy.run_module("aimbot_lab", run_name="__main__", alter_sys=True)  # which exits
    # Not ignored, which the command would inherit: who ends the group waits for all of it.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    _at_the_end_of_stdin(_end_group)
    code = subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL)
    return code if code >= 0 else 128 - code


def _at_the_end_of_stdin(end: Callable[[], None]) -> None:
    """Call `end`, in a thread, once the starter is gone."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        end()

    threading.Thread(target=watch, daemon=True).start()


def _end_group() -> None:
    os.killpg(0, signal.SIGTERM)
    time.sleep(SECONDS_TO_END)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
