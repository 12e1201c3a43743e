"""What a supervised worker does: `python supervised_program.py FOLDER KIND`.

`python supervised_program.py FOLDER KIND PROCESSES` supervises that many.
"""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from aimbot_lab.training.processes.exchange import LostError, rank_from_environment
from aimbot_lab.training.processes.supervisor import supervise

FOLDER, KIND = Path(sys.argv[1]), sys.argv[2]
RANK = int(os.environ.get("RANK", "0"))
WAIT_S = 400  # longer than any test


def note(word: str) -> None:
    with open(FOLDER / "notes", "a") as notes:
        notes.write(f"{word} {RANK} {os.getpid()}\n")


def say(line: str, *, error: bool = False) -> None:
    (sys.stderr if error else sys.stdout).write(f"{line}\n")


def once_noted(word: str, times: int = 1) -> None:
    """Return once `word` was noted so many times."""
    for _ in range(WAIT_S * 100):
        notes = FOLDER / "notes"
        if notes.exists() and notes.read_text().count(f"{word} ") >= times:
            return
        time.sleep(0.01)


def end() -> None:
    say(f"rank {RANK} of {os.environ['WORLD_SIZE']}, {os.environ['COLOUR']} {sys.argv[1:3]}")
    say("a warning", error=RANK > 0)


def lives() -> int:
    """How often this rank has begun."""
    notes = FOLDER / "notes"
    return notes.read_text().count(f"start {RANK} ") if notes.exists() else 0


def end_first() -> None:
    """Rank 0 ends as a training does, after which rank 1 dies, or stays."""
    if RANK == 0:
        note("over")
        sys.exit(130 if KIND == "stop first" else 0)
    once_noted("over")
    if KIND == "stay":
        once_noted("never")
    os.kill(os.getpid(), signal.SIGKILL)


def be_stopped() -> None:
    """Stop as a training does: save, which takes rank 0 longer, then 130."""

    def receive(_number: int, _frame: FrameType | None) -> None:
        note("signal")

    signal.signal(signal.SIGINT, receive)
    note("ready")
    once_noted("signal", 2)
    time.sleep(0.5 if RANK == 0 else 0)
    note("saved")
    sys.exit(130)


def tell_where() -> None:
    """What torchrun would say, in each of two lives."""
    names = "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"
    with open(FOLDER / "places", "a") as places:
        places.write(f"{' '.join(os.environ[name] for name in names)}\n")
    note("where")
    if lives() == 1:
        once_noted("where", 2)
        os.kill(os.getpid(), signal.SIGKILL)


def ignore_stop() -> None:
    signal.signal(signal.SIGINT, lambda *_: note("signal"))
    note("ready")
    once_noted("never")


def meet_again() -> None:
    """Exchange; rank 1 dies in its first life, in the midst of it."""

    from aimbot_lab.training.processes.gloo import connect

    if RANK == 0 and lives() > 1:
        time.sleep(1)  # rank 1 comes first, and must not find the address of a dead process
    try:
        exchange = connect(rank_from_environment(), patience_s=30)
        exchange.gather(b"all are here")
        if RANK and lives() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        say(b"".join(exchange.gather(b"rank %d" % RANK)).decode())
        exchange.close()
    except LostError as error:
        sys.exit(error.exit_code)


def progress() -> int:
    """As if every life had written a checkpoint."""
    return lives() if KIND == "meet again" else 0


KINDS = {
    "end": end,
    "stop first": end_first,
    "stay": end_first,
    "be stopped": be_stopped,
    "ignore stop": ignore_stop,
    "tell where": tell_where,
    "meet again": meet_again,
}

if __name__ == "__main__":
    if len(sys.argv) == 4:
        command = [sys.executable, __file__, *sys.argv[1:3]]
        code = supervise(
            command,
            int(sys.argv[3]),
            environment={"COLOUR": "red"},
            report=lambda line: say(line, error=True),
            progress=progress,
        )
        heavy = {"torch", "mlflow", "numba"} & set(sys.modules)
        sys.exit(f"loaded {heavy}" if heavy else code)
    note("start")
    KINDS[KIND]()
