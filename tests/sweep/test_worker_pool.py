"""Which deaths of workers end a sweep: only those that will come again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.sweep import worker as crew_module
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


@pytest.fixture
def crew_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], WorkerPool]:
    """A crew of one, whose workers one after the other fare as the list says; then one stays."""

    def make(fates: list[str]) -> WorkerPool:
        left = list(fates)

        def start(_order: WorkerArguments) -> Any:
            fate = left.pop(0) if left else "stays"
            said = [WorkerMessage("ready")] if fate != "dies at once" else []
            return crew_module._PooledWorker(FakeProcess(fate == "stays"), FakeConnection(said))  # type: ignore[arg-type]

        monkeypatch.setattr(crew_module, "_start", start)
        monkeypatch.setattr(crew_module, "wait", lambda *_: [])
        return WorkerPool(ORDER, 1, notify=lambda _text: None)

    return make


def listen(pool: WorkerPool, times: int) -> None:
    for _ in range(times):
        pool.listen(0.0)


def test_workers_that_can_not_start_end_a_sweep(crew_of: Callable[[list[str]], WorkerPool]) -> None:
    pool = crew_of(["dies at once"] * MAX_FAILED_STARTS)
    with pytest.raises(LabError, match=r"workers die before they are ready \(signal 9\)"):
        listen(pool, MAX_FAILED_STARTS)


def test_starts_that_were_killed_far_apart_do_not_add_up(
    crew_of: Callable[[list[str]], WorkerPool],
) -> None:
    fates = ["dies at once", "dies at once", "dies ready"] * 5
    pool = crew_of(fates)
    listen(pool, len(fates) + 1)
    assert not pool.is_done
