"""Who writes a run, and the right to: a lock for this machine, and a lease for all others.

A run folder's owner, a process distinguishable from every later one, holds a lock on a file in it
as long as it lives. Every container and pid namespace of a machine sees that lock, and the system
frees it when its holder dies, however. The owner also renews that file's time, which is its lease:
another machine, which may not see the lock, takes an owner for dead once its lease is over.

A process that takes a run over writes another lock file's name into the owner file. The owner
before it finds that there, at the latest with its next renewal, and writes nothing any more.
"""

import fcntl
import hashlib
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from aimbot_lab.foundation.errors import RunLostError
from aimbot_lab.tracking.address import without_password
from aimbot_lab.tracking.durable import replace_file

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


OWNER_NAME = "owner.json"
RENEWAL_SECONDS = 5.0
LEASE_SECONDS = 60.0  # after the last renewal
_LOCK = "lock-"
_CLOCK = ".clock"
_CLOSED = -1
_WAIT_SECONDS = 2 * RENEWAL_SECONDS  # for an owner of this machine to see that it has lost
_LOOK_SECONDS = 0.05


class Hold:
    """This process's right to write the run in `folder`, renewed by a thread until released."""

    def __init__(self, folder: Path, owner: Owner, descriptor: int) -> None:
        self.folder = folder
        self._lock = owner.lock
        self._descriptor = descriptor
        self._lost_to: Owner | None = None
        self.before: bytes | None = None  # the file of an owner that may live, to be put back
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="run-lease", daemon=True)
        self._thread.start()

    @property
    def is_lost(self) -> bool:
        """Whether another process was found to have the run; reads no file."""
        return self._lost_to is not None

    def check(self, *, anew: bool = True) -> None:
        """Raise RunLostError where another process has the run; `anew` reads the owner file."""
        if anew and self._lost_to is None and not self._over.is_set():
            self._look()
        if self._lost_to is not None:
            by = self._lost_to
            who = f"process {by.pid} on {by.host}" if by.pid else "another process"
            raise RunLostError(
                f"run {self.folder.name} was taken over by {who}; this training has stopped and "
                "writes no more"
            )

    def stop(self) -> None:
        """Renew no more, and look no more for other owners."""
        self._over.set()
        self._thread.join()

    def release(self) -> None:
        """Stop, and free the lock; doing so twice changes nothing."""
        self.stop()
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            os.close(descriptor)

    def _renew(self) -> None:
        while not self._over.wait(RENEWAL_SECONDS):
            self._look()
            with suppress(OSError):  # a disk that refuses may take the next one
                os.utime(self._descriptor)

    def _look(self) -> None:
        # A file that is gone or damaged says nothing of another owner.
        owner = read_owner(self.folder / OWNER_NAME)
        if owner is not None and owner.lock != self._lock:
            self._lost_to = owner


def take_hold(folder: Path, owner: Owner) -> tuple[Owner, Hold]:
    """Have `owner`, which is this process, own the run in `folder`; it holds it from now on.

    Raises OSError, leaving the owner before it, where the disk refuses.
    """
    path = folder / f"{_LOCK}{uuid.uuid4().hex}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        held = replace(owner, lock=path.name, locked=_locks(descriptor))
        write_owner(folder / OWNER_NAME, held)
    except BaseException:
        os.close(descriptor)
        path.unlink(missing_ok=True)
        raise
    return held, Hold(folder, held, descriptor)


def is_free(folder: Path, owner: Owner) -> bool:
    """Whether `owner` writes the run in `folder` no more.

    It has said so, it is dead, or it is on another machine and its lease is over. A machine of
    this one's name may be another one, whose locks can't be seen: there both must say so.
    """
    if owner.is_unknown:
        return False
    if owner.pid is None:
        return True
    if owner.lock is None or not (folder / owner.lock).exists():  # an older version's, or deleted
        return owner.is_gone()
    if owner.locked and owner.is_on_this_machine():
        return not _is_locked(folder / owner.lock)
    if owner.locked and owner.is_here() and _is_locked(folder / owner.lock):
        return False
    return owner.is_gone() or lease_left(folder, owner) <= 0.0


def lease_left(folder: Path, owner: Owner) -> float:
    """Seconds until the lease of `owner` is over, by the clock of the disk, which all share."""
    try:
        renewed = (folder / str(owner.lock)).stat().st_mtime
    except FileNotFoundError:
        return 0.0
    except OSError:
        return LEASE_SECONDS
    return renewed + LEASE_SECONDS - _clock(folder)


def wait_for(folder: Path, owner: Owner) -> None:
    """Wait, where that can be seen, until `owner` sees that another one has its run."""
    until = time.monotonic() + _WAIT_SECONDS
    while not _is_let_go(folder, owner) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)


def forget_locks(folder: Path, keep: Owner) -> None:
    """Delete the lock files of all owners but `keep`."""
    for path in folder.glob(f"{_LOCK}*"):
        if path.name != keep.lock:
            with suppress(OSError):
                path.unlink()


def _is_let_go(folder: Path, owner: Owner) -> bool:
    sees = owner.lock is not None and owner.locked and owner.is_on_this_machine()
    return not sees or not _is_locked(folder / str(owner.lock))


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # a file system without locks
    return True


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        # Shared, so that two that look at once don't take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _clock(folder: Path) -> float:
    """The time, in seconds since 1970, that a renewal in `folder` would be given now."""
    probe = folder / _CLOCK
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.utime(descriptor)
            return os.fstat(descriptor).st_mtime
        finally:
            os.close(descriptor)
            probe.unlink(missing_ok=True)
    except OSError:
        return time.time()
