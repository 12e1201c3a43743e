"""Who writes a run: a process of a machine, distinguishable from every later one."""

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from aimbot_lab.tracking.address import without_password
from aimbot_lab.tracking.journal.durable import replace_file

OWNER_TAG = "mlflow.lab.owner"  # the page shows no tag that begins with mlflow
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = "/proc/self/ns/pid"
_CHECK = "check"  # key of the file's own hash; older files lack it
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "host": str,
    "boot": str,
    "pid": (int, type(None)),
    "started": (int, float),
    "token": str,
    "tracking_uri": (str, type(None)),
    "pid_namespace": (str, type(None)),
    "lock": (str, type(None)),
    "locked": bool,
}
_CLOCK_TOLERANCE = 2.0  # seconds; the boot time is known in whole seconds


@dataclass(frozen=True)
class Owner:
    """The process that writes a run, and the store it writes to."""

    host: str
    boot: str  # changes with every start of the machine
    pid: int | None  # None: the owner has left the run for others to deliver
    started: float  # seconds after the boot, so that setting the clock changes nothing
    token: str  # distinguishes the runs of one process
    tracking_uri: str | None  # without password; None: the embedded store, wherever it lies now
    pid_namespace: str | None = None  # in which `pid` counts; None: no Linux, or an older version
    lock: str | None = None  # file of the run folder that it holds and renews; None: it has none
    locked: bool = False  # whether the file system knows locks: else only its lease counts

    @property
    def label(self) -> str:
        """What the run's tag `OWNER_TAG` says; it ends with the token."""
        return f"{self.host}:{self.pid}:{self.token}"

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known of it, because its file is damaged."""
        return self == UNKNOWN

    def is_here(self) -> bool:
        """Whether this process is, or was, one of a machine with this one's name."""
        return self.host == platform.node()

    def is_on_this_machine(self) -> bool:
        """Whether it runs, or ran, on this very kernel, in whatever container."""
        same = self.boot == _boot_id()
        return same and (self.pid_namespace is not None or self.is_here())

    def is_gone(self) -> bool:
        """Whether its process number shows that it is dead.

        False where that number says nothing: on another machine, in another container.
        """
        if self.pid is None:
            return True
        if not self.is_here():
            return False
        if self.boot != _boot_id():
            return self.pid_namespace is None  # else it may be another machine of that name
        return self.pid_namespace in (None, _pid_namespace()) and not self._runs()

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
    """The calling process as an owner; it keeps no password."""
    return Owner(
        host=platform.node(),
        boot=_boot_id(),
        pid=os.getpid(),
        started=_own_start(),
        token=token,
        tracking_uri=None if tracking_uri is None else without_password(tracking_uri),
        pid_namespace=_pid_namespace(),
    )


UNKNOWN = Owner(host="", boot="", pid=0, started=0.0, token="", tracking_uri=None)


def write_owner(path: Path, owner: Owner) -> None:
    """Write `owner` to `path`, readable by this user alone."""
    values = asdict(owner)
    replace_file(path, json.dumps({**values, _CHECK: _hash(values)}).encode())


def read_owner(path: Path) -> Owner | None:
    """The owner written at `path`, None if missing or unreadable."""
    try:
        values = json.loads(path.read_bytes())
        if _CHECK in values and values.pop(_CHECK) != _hash(values):
            return None
        owner = Owner(**values)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    fits = all(isinstance(getattr(owner, name), kind) for name, kind in _TYPES.items())
    return owner if fits and os.sep not in (owner.lock or "") else None


def _hash(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def _started(process: psutil.Process) -> float:
    return process.create_time() - psutil.boot_time()


def _own_start() -> float:
    try:
        return _started(psutil.Process())
    except psutil.Error:
        return 0.0  # /proc is that of another pid namespace


def _pid_namespace() -> str | None:
    try:
        return os.readlink(_PID_NAMESPACE)
    except OSError:
        return None


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        # Not Linux: the boot time in minutes, which survives small corrections of the clock.
        return str(round(psutil.boot_time() / 60))
