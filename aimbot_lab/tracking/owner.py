"""Who writes a run: a process of a machine, told apart from every later one."""

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from aimbot_lab.tracking.durable import replace_file

OWNER_TAG = "lab.owner"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_CLOCK_TOLERANCE = 2.0  # seconds; the boot time is known in whole seconds


@dataclass(frozen=True)
class Owner:
    """The process that writes a run, and the store it writes to."""

    host: str
    boot: str  # changes with every start of the machine
    pid: int | None  # None: the owner has left the run for others to deliver
    started: float  # seconds after the boot, so that setting the clock changes nothing
    token: str  # tells runs of one process apart
    tracking_uri: str | None  # None: the embedded store, wherever its folder lies now

    @property
    def label(self) -> str:
        """What the run's tag `lab.owner` says; it ends with the token."""
        return f"{self.host}:{self.pid}:{self.token}"

    def is_here(self) -> bool:
        """Whether this process is, or was, one of this machine."""
        return self.host == platform.node()

    def is_gone(self) -> bool:
        """Whether this process is surely dead; False for one on another machine."""
        if self.pid is None:
            return True
        if not self.is_here():
            return False
        return self.boot != _boot_id() or not self._runs()

    def _runs(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            return abs(_started(process) - self.started) < _CLOCK_TOLERANCE
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True


def this_process(token: str, tracking_uri: str | None) -> Owner:
    """The calling process as an owner."""
    return Owner(
        host=platform.node(),
        boot=_boot_id(),
        pid=os.getpid(),
        started=_started(psutil.Process()),
        token=token,
        tracking_uri=tracking_uri,
    )


def write_owner(path: Path, owner: Owner) -> None:
    """Write `owner` to `path`, readable by this user alone: the address may hold a password."""
    replace_file(path, json.dumps(asdict(owner)).encode())


def read_owner(path: Path) -> Owner | None:
    """The owner written at `path`, None where there is none that can be read."""
    try:
        return Owner(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _started(process: psutil.Process) -> float:
    return process.create_time() - psutil.boot_time()


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        # Not Linux: the boot time in minutes, which survives small corrections of the clock.
        return str(round(psutil.boot_time() / 60))
