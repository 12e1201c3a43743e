"""A run's folder in the data folder: its journal, its checkpoints, and the process that owns it.

It is called `opening-TOKEN` until the store has given the run its id, then by that id, and
`done-ID` while it is deleted. It is deleted once the store has everything, unless the run can be
resumed; then it is settled, and only a resumption looks into it.

The owner, a process distinguishable from every later one, holds a lock on a file in the folder as
long as it lives. Every container and pid namespace of a machine sees that lock, and the system
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
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from aimbot_lab.foundation.errors import ConfigurationError, RunLostError
from aimbot_lab.foundation.files import (
    disk_error,
    read_bounded,
    read_start,
    replace_file,
    sync_file,
)
from aimbot_lab.tracking.data_folder import DataFolder, without_password
from aimbot_lab.tracking.journal import JOURNAL_NAME, RESERVE_NAME, count_waiting, detach_growing

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
MAX_OWNER_BYTES = 2**16
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
        except (psutil.NoSuchProcess, ValueError):  # no process has such a number
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
        values = json.loads(read_bounded(path, MAX_OWNER_BYTES))
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


def forget_locks(folder: Path, keep: Owner) -> None:
    """Delete the lock files of all owners but `keep`."""
    for path in folder.glob(f"{_LOCK}*"):
        if path.name != keep.lock:
            with suppress(OSError):
                path.unlink()


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


_OPENING = "opening-"
_DONE = "done-"
CHECKPOINTS_NAME = "checkpoints"
_SETTLED_NAME = "settled"
_STALE_SECONDS = 600.0  # after which a folder without an owner will get none


@dataclass(frozen=True)
class RunFolder:
    """One run's folder and who owns it."""

    path: Path
    owner: Owner
    hold: Hold | None = field(default=None, compare=False)  # of this process, where it has it

    @property
    def is_free(self) -> bool:
        """Whether the owner writes the run no more.

        It has said so, it is dead, or it is on another machine and its lease is over. A machine of
        this one's name may be another one, whose locks can't be seen: there both must say so.
        """
        owner = self.owner
        if owner.is_unknown:
            return False
        if owner.pid is None:
            return True
        lock = None if owner.lock is None else self.path / owner.lock
        if lock is None or not lock.exists():  # an older version's, or deleted
            return owner.is_gone()
        if owner.locked and owner.is_on_this_machine():
            return not _is_locked(lock)
        if owner.locked and owner.is_here() and _is_locked(lock):
            return False
        return owner.is_gone() or self.lease_left <= 0.0

    @property
    def lease_left(self) -> float:
        """Seconds until the owner's lease is over, by the clock of the disk, which all share."""
        try:
            renewed = (self.path / str(self.owner.lock)).stat().st_mtime
        except FileNotFoundError:
            return 0.0
        except OSError:
            return LEASE_SECONDS
        return renewed + LEASE_SECONDS - _clock(self.path)

    @property
    def run_id(self) -> str | None:
        """The run's id, None where the owner had not yet learned it."""
        return None if self.path.name.startswith(_OPENING) else self.path.name

    @property
    def checkpoints(self) -> Path:
        """The folder that a training may make, to keep in it what a resumption needs."""
        return self.path / CHECKPOINTS_NAME

    def named(self, run_id: str) -> "RunFolder":
        """This folder under its run's id. Raises StoreError where the disk refuses."""
        try:
            path = self.path.rename(self.path.with_name(run_id))
            sync_file(path.parent)
        except OSError as error:
            raise disk_error(self.path, error) from error
        if self.hold is not None:
            self.hold.folder = path
        return replace(self, path=path)

    def check_owner(self, *, anew: bool = True) -> None:
        """Raise RunLostError where this process had the run and another one took it over."""
        if self.hold is not None:
            self.hold.check(anew=anew)

    def release(self) -> None:
        """Let others deliver what waits here, while this process lives on."""
        if not self._was_taken_over():
            if self.hold is not None:
                self.hold.stop()  # which would take what follows for another owner
            # Where the disk refuses, freeing the lock does the same.
            with suppress(OSError):
                write_owner(self.path / OWNER_NAME, replace(self.owner, pid=None, lock=None))
                self._forget_lock()
        self._let_go()

    def settle(self) -> None:
        """Note that the store has everything of the run, its end included.

        What is left is deleted, unless the run can be resumed.
        """
        if self._was_taken_over():
            self._let_go()
            return
        if not self.checkpoints.is_dir():
            self.remove()
            return
        # Where the disk refuses, a reaper finds nothing left to send and tries again.
        with suppress(OSError):
            (self.path / RESERVE_NAME).unlink(missing_ok=True)
            replace_file(self.path / _SETTLED_NAME, b"")
        self.release()

    def unsettle(self) -> None:
        """Take back what `settle` noted. Raises StoreError where the disk refuses."""
        try:
            (self.path / _SETTLED_NAME).unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(self.path, error) from error

    def forget_checkpoints(self) -> None:
        """Delete what a resumption needs, and the folder where it was kept for that alone."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        if (self.path / _SETTLED_NAME).exists() and self.is_free:
            self.remove()

    def taken_over(self, owner: Owner) -> "RunFolder":
        """This folder as that of `owner`, which is this process.

        An owner before it that may still live, unseen from here, can have it back by `give_back`
        until `part`. Raises StoreError where the disk refuses; then it has it back.
        """
        was_free = self.is_free
        try:
            before = None if was_free else read_start(self.path / OWNER_NAME)
            taken, hold = take_hold(self.path, owner)
        except OSError as error:
            raise disk_error(self.path, error) from error
        folder = replace(self, owner=taken, hold=hold)
        hold.before = before
        try:
            if before is not None:
                self._wait_until_let_go()
            if was_free and self.owner.is_on_this_machine():
                forget_locks(self.path, keep=taken)
            elif self.is_free:
                folder.part()
        except BaseException:
            folder.give_back()
            raise
        return folder

    def _wait_until_let_go(self) -> None:
        """Wait, where that can be seen, until the owner sees that another one has its run."""
        if self.owner.lock is None or not self.owner.locked or not self.owner.is_on_this_machine():
            return
        until = time.monotonic() + _WAIT_SECONDS
        while _is_locked(self.path / self.owner.lock) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)

    def part(self) -> None:
        """Have an owner before this one, which may still live, write nothing into this folder.

        Its own files are taken away, so that what it may be writing at this moment arrives
        nowhere. Raises StoreError where the disk refuses.
        """
        journal = self.path / JOURNAL_NAME
        try:
            if journal.exists():
                replace_file(journal, read_start(journal))
            if self.hold is not None:
                self.hold.before = None
            detach_growing(self.path)
        except OSError as error:
            raise disk_error(self.path, error) from error
        forget_locks(self.path, keep=self.owner)

    def give_back(self) -> bool:
        """Release the run; whether to the owner before, which may live and goes on if it does."""
        before = None if self.hold is None else self.hold.before
        if self.hold is None or before is None or self._was_taken_over():
            self.release()
            return False
        self.hold.stop()
        try:
            replace_file(self.path / OWNER_NAME, before)
        except OSError:
            self.release()
            return False
        self.hold.before = None
        self._forget_lock()
        self._let_go()
        return True

    def remove(self) -> None:
        """Delete the folder; renamed first, so that a half-deleted one is never taken for a run."""
        if self._was_taken_over():
            self._let_go()
            return
        # Where the disk refuses, a reaper finds nothing left to send and tries again.
        with suppress(OSError):
            done = self.path.rename(self.path.with_name(_DONE + self.path.name))
            shutil.rmtree(done, ignore_errors=True)
        self._let_go()

    def _was_taken_over(self) -> bool:
        try:
            self.check_owner()
        except RunLostError:
            return True
        return False

    def _forget_lock(self) -> None:
        if self.owner.lock is not None:
            with suppress(OSError):
                (self.path / self.owner.lock).unlink(missing_ok=True)

    def _let_go(self) -> None:
        if self.hold is not None:
            self.hold.release()


def create_run_folder(data_folder: DataFolder, owner: Owner) -> RunFolder:
    """A folder for a run that has no id yet, held by `owner`, which is this process.

    Raises StoreError where it can't be written.
    """
    data_folder.create()
    path = data_folder.run_folder(_OPENING + owner.token)
    try:
        path.mkdir()
        held, hold = take_hold(path, owner)
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)
        raise disk_error(path, error) from error
    return RunFolder(path, held, hold)


def living_folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    """The folders whose owner is a living process of this machine; changes nothing."""
    for folder in _folders(data_folder):
        if folder.owner.is_on_this_machine() and not folder.is_free:
            yield folder


def left_over_folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    """The folders whose owner is gone and that hold something for their store.

    Half-deleted ones are deleted on the way.
    """
    _tidy(data_folder)
    yield from (folder for folder in _folders(data_folder, settled=False) if folder.is_free)


def run_folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    """All folders that have an owner, be its file damaged.

    Half-deleted ones are deleted on the way, as are those whose process died before it had
    written that it owns them.
    """
    _tidy(data_folder)
    yield from _folders(data_folder)


def _tidy(data_folder: DataFolder) -> None:
    for path in _paths(data_folder):
        if path.name.startswith(_DONE) or _is_stillborn(path):
            shutil.rmtree(path, ignore_errors=True)


def damaged_owner_files(data_folder: DataFolder) -> list[Path]:
    """The owner files that can't be read, whose runs are listed all the same; changes nothing."""
    return [one.path / OWNER_NAME for one in _folders(data_folder) if one.owner.is_unknown]


def _folders(data_folder: DataFolder, *, settled: bool = True) -> Iterator[RunFolder]:
    """All of them, or those that are not settled, without reading the others' files."""
    for path in _paths(data_folder):
        file = path / OWNER_NAME
        if path.name.startswith(_DONE) or not path.is_dir():
            continue
        if not settled and (path / _SETTLED_NAME).exists():
            continue
        owner = read_owner(file)
        if owner is not None:
            yield RunFolder(path, owner)
        elif file.exists() or (path / CHECKPOINTS_NAME).is_dir():
            yield RunFolder(path, UNKNOWN)


def _paths(data_folder: DataFolder) -> list[Path]:
    return sorted(data_folder.runs.iterdir()) if data_folder.runs.is_dir() else []


def _is_stillborn(path: Path) -> bool:
    if not path.name.startswith(_OPENING) or (path / OWNER_NAME).exists():
        return False
    try:
        return time.time() - path.stat().st_mtime > _STALE_SECONDS
    except OSError:
        return False


LATEST = "latest"


def _begun(folder: RunFolder) -> float:
    """When the run's process wrote that it owns it; s since 1970, 0 where it has just ended."""
    try:
        return (folder.path / OWNER_NAME).stat().st_mtime
    except OSError:
        return 0.0


def running_run(data_folder: DataFolder, run: str) -> RunFolder:
    """The folder of the one running run whose id begins with `run`; "latest" began last.

    Raises ConfigurationError otherwise.
    """
    living = [folder for folder in living_folders(data_folder) if folder.run_id is not None]
    if run == LATEST and living:
        return max(living, key=_begun)
    matches = [one for one in living if run and str(one.run_id).startswith(run)]
    if len(matches) == 1:
        return matches[0]
    exact = [one for one in matches if one.run_id == run]
    if exact:
        return exact[0]
    if matches:
        raise ConfigurationError(
            f"{run!r}: several running runs begin with that; give more of the id"
        )
    running = ", ".join(str(one.run_id) for one in living) or "none"
    raise ConfigurationError(f"{run!r}: no such run is running here (running: {running})")


@dataclass(frozen=True)
class WaitingRun:
    """What a data folder holds of a run until `close_orphan_runs` can deliver it."""

    run_id: str
    entries: int  # numbers, tags and files, and the end of the run
    store: str  # the address that they wait for, without a password


def waiting_runs(data_folder: DataFolder) -> list[WaitingRun]:
    """The runs of dead or finished processes whose entries wait here; only reads."""
    return [
        WaitingRun(folder.run_id, entries, folder.owner.tracking_uri or data_folder.tracking_uri)
        for folder in left_over_folders(data_folder)
        if folder.run_id is not None and (entries := count_waiting(folder.path))
    ]


def find_run_folder(data_folder: DataFolder, run_id: str) -> RunFolder | None:
    """The folder of a run in this data folder, None if missing."""
    return next((one for one in run_folders(data_folder) if one.run_id == run_id), None)


def refuse_unless_free(folder: RunFolder) -> None:
    """Raise ConfigurationError, which says how to resume it, where its owner may be alive."""
    if folder.is_free:
        return
    owner, way = folder.owner, f"aimbot-lab resume {folder.run_id} --take-over"
    who = f"process {owner.pid} on {owner.host}"
    if owner.is_unknown:
        raise ConfigurationError(
            f"{folder.path / OWNER_NAME}: is damaged, so it is not known whether run "
            f"{folder.run_id} is still being trained; if no process trains it: {way}"
        )
    if owner.is_on_this_machine():
        raise ConfigurationError(
            f"run {folder.run_id} is still trained by {who}; "
            f"end that process first, or take the run over: {way}"
        )
    raise ConfigurationError(
        f"run {folder.run_id} may still be trained by {who}{_until(folder)}; "
        f"if that process is dead, resume it now: {way}"
    )


def _until(folder: RunFolder) -> str:
    """What is known of an owner's lease."""
    if folder.owner.lock is None:
        return ", by an older version, which renews no lease"
    if not (folder.path / folder.owner.lock).exists():
        return ", whose lock file was deleted"
    left = max(folder.lease_left, 0.0)
    return (
        f", which renewed its lease {LEASE_SECONDS - left:.0f} s ago: it can be resumed in "
        f"{left:.0f} s unless it is renewed again"
    )
