"""The first moments of a worker: it is tied to the launcher, then becomes the command.

`python -I -S tied_start.py PID COMMAND...`: once the process PID, which started this one, is gone,
the kernel kills this one too, also after `kill -9` (on Linux). Nothing of the package is imported:
that would cost each worker a start of Python with all of its libraries' paths.
"""

import ctypes
import os
import signal
import sys

SET_PARENT_DEATH_SIGNAL = 1  # linux/prctl.h


def main() -> None:
    """Become the command."""
    for number in signal.SIGINT, signal.SIGPIPE:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # Ray's workers block it
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() == int(sys.argv[1]):  # it was not gone before
        os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
