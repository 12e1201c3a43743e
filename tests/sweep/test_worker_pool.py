"""Which deaths of workers end a sweep: only those that will come again."""

from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.sweep import worker
from aimbot_lab.sweep.worker import MAX_FAILED_STARTS, WorkerArguments, WorkerMessage, WorkerPool

ORDER = WorkerArguments("sqlite:///x", "x", Path("x"), None)


class FakeProcess:
    """A worker's process, dead or alive as its test says."""

    exitcode = -9
    sentinel = 0
    pid = 1

    def __init__(self, alive: bool) -> None:
        self.alive = alive

    def is_alive(self) -> bool:
        return self.alive

    def join(self) -> None:
        pass

    kill = join


class FakeConnection:
    """What a worker says."""

    def __init__(self, messages: list[WorkerMessage]) -> None:
        self._messages = messages

    def poll(self) -> bool:
        return bool(self._messages)

    def recv(self) -> WorkerMessage:
        return self._messages.pop(0)

    def close(self) -> None:
        pass


def is_done(fates: list[str], patch: pytest.MonkeyPatch) -> bool:
    """Whether a pool of one is done, whose workers fare as the list says; then one stays."""
    left = list(fates)

    def start(_order: WorkerArguments) -> Any:
        fate = left.pop(0) if left else "stays"
        said = [WorkerMessage("ready")] if fate != "dies at once" else []
        return worker._PooledWorker(FakeProcess(fate == "stays"), FakeConnection(said))  # type: ignore[arg-type]

    patch.setattr(worker, "_start", start)
    patch.setattr(worker, "wait", lambda *_: [])
    pool = WorkerPool(ORDER, 1, notify=lambda _text: None)
    for _ in range(len(fates) + 1):
        pool.listen(0.0)
    return pool.is_done


def test_workers_that_can_not_start_end_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError, match=r"workers die before they are ready \(signal 9\)"):
        is_done(["dies at once"] * MAX_FAILED_STARTS, monkeypatch)


def test_starts_that_were_killed_far_apart_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_done(["dies at once", "dies at once", "dies ready"] * 5, monkeypatch)
