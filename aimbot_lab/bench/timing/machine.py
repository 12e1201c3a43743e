"""What a benchmark ran on."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Machine:
    """The processor and the versions that decide how fast kernels run."""

    cpu: str
    cpu_count: int  # that this process may use
    python: str
    numba: str
    numpy: str


def this_machine() -> Machine:
    """The machine and libraries of this process."""
    usable = getattr(os, "sched_getaffinity", None)
    return Machine(
        cpu=_cpu_model(),
        cpu_count=len(usable(0)) if usable else os.cpu_count() or 1,
        python=platform.python_version(),
        numba=version("numba"),
        numpy=version("numpy"),
    )


def _cpu_model() -> str:
    if CPU_INFO.is_file():
        for line in CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
