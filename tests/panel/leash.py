"""Processes that end with the tests that started them, however these end.

`python leash.py PID COMMAND...` becomes COMMAND, which the kernel kills (Linux) once the thread
that started it is gone; PID is the process of that thread.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1  # Source: prctl(2)


def leashed(*command: str) -> Sequence[str]:
    """What runs `command` in a process that ends with the thread that starts it."""
    return [sys.executable, __file__, str(os.getpid()), *command]


def main(parent: int, command: Sequence[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:  # and was not gone before
        os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
