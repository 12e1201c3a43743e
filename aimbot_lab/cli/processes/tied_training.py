"""`aimbot-lab` that stops, as by SIGTERM, when the process that started it is gone.

`python -m aimbot_lab.cli.processes.tied_training run FILE ...` runs `aimbot-lab run FILE ...`.
The starter holds the other end of its standard input and never writes; the kernel closes it even
after `kill -9`. A training then stops and saves; unlike `tied_process`, nothing is killed later.
"""

import os
import signal
import threading

STDIN = 0


def end_with_stdin() -> None:
    """Send this process SIGTERM once its standard input is closed."""
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    while os.read(STDIN, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    from aimbot_lab.entry import main

    end_with_stdin()
    main()
