"""Work in threads: what it may raise, and the heavy libraries that it imports.

These are imported when they are first needed, and one after another. Threads that import packages
with circles inside (torch, stable-baselines3, numba) at the same time get halves of them; so what
runs in a thread loads what it needs by `Loader` first.
"""

import asyncio
import importlib
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from aimbot_lab.foundation.errors import LabError, reason_and_place
from aimbot_lab.foundation.shown_text import one_line, shortened

STORE = ("aimbot_lab.tracking.mlflow_store",)
KERNELS = ("aimbot_lab.foundation.kernels.jit",)
AGENTS = (*KERNELS, "aimbot_lab.training.agents.agent_files")
SWEEPS = ("aimbot_lab.sweep.results.report",)
Value = TypeVar("Value")
Given = ParamSpec("Given")


class Loader:
    """Imports modules for all threads, one at a time."""

    def __init__(self, load: Callable[[str], object] = importlib.import_module) -> None:
        self._load, self._lock = load, threading.Lock()
        self._loaded: set[str] = set()

    def need(self, *modules: str) -> None:
        """Have `modules` imported; waits for what another thread imports."""
        for name in modules:
            if name in self._loaded:
                continue
            with self._lock:
                if name not in self._loaded:
                    self._load(name)
                    self._loaded.add(name)


async def in_thread(
    work: Callable[Given, Value], *arguments: Given.args, **named: Given.kwargs
) -> Value:
    """What `work` returns, called with the other arguments in a thread. Raises what it raises.

    Modules and environments of users run there. What they raise to end their process
    (SystemExit, KeyboardInterrupt) would end the panel in its place: it is raised as LabError.
    """
    found: list[Value] = []

    def done() -> BaseException | None:  # futures can't hold every exception, so none crosses one
        try:
            found.append(work(*arguments, **named))
        except BaseException as error:  # noqa: BLE001
            return error
        return None

    raised = await asyncio.to_thread(done)
    if isinstance(raised, Exception):
        raise raised
    if raised is not None:
        place = reason_and_place(raised)
        raise LabError(f"code that the panel called would have ended it: {place}") from raised
    return found[0]


def failure_words(error: BaseException) -> str:
    """What a person reads of a fault of the panel itself."""
    return shortened(one_line(f"the panel failed: {type(error).__name__}: {error}"), 300)
