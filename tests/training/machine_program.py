"""A launcher of a machine: `python machine_program.py FOLDER NAME MACHINES PORT PATIENCE SEED`.

All machines have the address 127.0.0.1; the first one that listens at PORT leads. A worker notes
that it begins, and works until the file `done` is there: `python machine_program.py FOLDER NAME`.
"""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.training.processes.machines.launching import follow, lead
from aimbot_lab.training.processes.machines.meeting_point import find_meeting_point, listen
from aimbot_lab.training.processes.machines.task import Task
from aimbot_lab.training.processes.machines.team import Team
from aimbot_lab.training.processes.place import LostError

FOLDER, NAME = Path(sys.argv[1]), sys.argv[2]
WAIT_S = 60  # longer than any test


def note(word: str) -> None:
    place = f"{os.environ['RANK']}/{os.environ['WORLD_SIZE']}"
    with open(FOLDER / "notes", "a") as notes:
        notes.write(f"{word} {NAME} {place} {os.getpid()} {os.environ['GLOO_SOCKET_IFNAME']}\n")


def work() -> int:
    """Stop as a training does when asked to, fail or lose others as a file says, or end well."""
    asked: list[int] = []

    def receive(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    signal.signal(signal.SIGINT, receive)
    note("start")
    for _ in range(WAIT_S * 50):
        if asked:
            note("stopped")
            return 130
        if (FOLDER / f"fail {NAME}").exists():
            sys.stderr.write("MemoryError: 3 GB\n")
            return 3
        if (FOLDER / f"lost {NAME}").exists():
            return LostError.exit_code
        if (FOLDER / "done").exists():
            return 0
        time.sleep(0.02)
    return 1


def launched(machines: str, port: str, patience: str, seed: str) -> int:
    point = find_meeting_point(f"127.0.0.1:{port}")
    fewest, most = map(int, machines.split(":"))
    team = Team(1, fewest, most, shards=3, patience_s=float(patience), about={"seed": seed})
    command = [sys.executable, __file__, *sys.argv[1:3]]
    task = Task(command, {}, progress=lambda: len(list(FOLDER.glob("checkpoint*"))))
    listener = listen(point)
    if listener is None:
        return follow(task, team, point)
    return lead(task, team, point, listener)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(work())
    try:
        sys.exit(launched(*sys.argv[3:]))
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
