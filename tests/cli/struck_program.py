"""`aimbot-lab`, one of whose processes ends or stops where a file says: `python struck_program.py
WORDS...`.

The file `strike` in the working folder holds a JSON list of a rank, a place, after how many calls
there, and a signal's name. The process of that rank renames it to `struck`, and sends itself the
signal. All wait PATIENCE_S for a silent process, and keep a checkpoint at every rollout.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_S = 45.0  # longer than the leader takes on a busy machine to open the tracking store
STRIKE, STRUCK = Path("strike"), Path("struck")
PLACES = "rollout", "minibatch", "gathering", "checkpoint"
"""A step of the world, the sum of gradients, what is told at boundaries and for a checkpoint, and
a checkpoint of which half is written."""


def of_ourselves(command: Any) -> Any:
    """`command`, with this program in the place of `aimbot-lab`."""
    words = list(command)
    if "aimbot_lab" in words:
        place = words.index("aimbot_lab") - 1
        words[place : place + 2] = [__file__]  # for -m aimbot_lab
    return words


class Started(subprocess.Popen):  # type: ignore[type-arg]
    def __init__(self, command: Any, **options: Any) -> None:
        super().__init__(of_ourselves(command), **options)


class Striker:
    """What this process does to itself."""

    def __init__(self, rank: int) -> None:
        self._rank, self._calls = rank, dict.fromkeys(PLACES, 0)

    def at(self, place: str, before: Callable[[], object] = lambda: None) -> None:
        """Strike if it is time, `before` which something is done."""
        try:
            rank, wanted, calls, name = json.loads(STRIKE.read_bytes())
        except FileNotFoundError:
            return
        if (rank, wanted) != (self._rank, place):
            return
        self._calls[place] += 1
        if self._calls[place] >= calls:
            self._calls[place] = 0
            before()
            STRIKE.rename(STRUCK)
            os.kill(os.getpid(), signal.Signals[name])

    def stands_at(self, owner: Any, name: str, place: str) -> None:
        """Have every call of `owner.name` come by here."""
        real = getattr(owner, name)

        def passed(*given: Any, **options: Any) -> Any:
            self.at(place)
            return real(*given, **options)

        setattr(owner, name, passed)

    def stands_within(self, owner: Any, name: str, place: str) -> None:
        """The same where `name` writes a checkpoint, with half of it written."""
        real = getattr(owner, name)

        def passed(descriptor: int, data: Any) -> None:
            if bytes(data[:10]) == b"aimbot-lab":
                self.at(place, lambda: os.write(descriptor, bytes(data)[: len(data) // 2]))
            real(descriptor, data)

        setattr(owner, name, passed)


def prepare(rank: int) -> None:
    """Have this process, which trains, keep many checkpoints and strike itself."""
    from aimbot_lab.adapters.sb3 import WorldVecEnv
    from aimbot_lab.foundation import files
    from aimbot_lab.training.callbacks import lesson_callback
    from aimbot_lab.training.processes import gloo

    meet = gloo.connect
    gloo.connect = lambda place, **_: meet(place, patience_s=PATIENCE_S)
    lesson_callback.MAX_SHARE = 1.0
    striker = Striker(rank)
    striker.stands_at(WorldVecEnv, "step_wait", "rollout")
    striker.stands_at(gloo.Gloo, "sum_up", "minibatch")
    striker.stands_at(gloo.Gloo, "gather", "gathering")
    striker.stands_within(files, "append_whole", "checkpoint")


if __name__ == "__main__":
    if "RANK" not in os.environ and "--processes" in sys.argv:
        subprocess.Popen = Started
    else:
        prepare(int(os.environ.get("RANK", "0")))
    from aimbot_lab.cli.main import main

    main()
