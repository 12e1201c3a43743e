"""Heavy libraries are imported when they are first needed, and one after another.

Threads that import packages with circles inside (torch, stable-baselines3, numba) at the same time
get halves of them; so what runs in a thread loads what it needs by this first.
"""

import importlib
import threading
from collections.abc import Callable

STORE = ("aimbot_lab.tracking.mlflow_store",)
KERNELS = ("aimbot_lab.foundation.kernels.jit",)
AGENTS = (*KERNELS, "aimbot_lab.training.agents.agent_files")
SWEEPS = ("aimbot_lab.sweep.results.report",)


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
