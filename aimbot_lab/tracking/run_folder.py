"""A run's folder: owner, journal, and the checkpoints that it can be resumed from.

`opening-TOKEN` until the store has given the run its id, then named by that id, `done-ID` while
it is deleted. It is deleted once the store has everything, unless the run can be resumed; then
it is settled, and only a resumption looks into it.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from aimbot_lab.foundation.errors import ConfigurationError, RunLostError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.durable import disk_error, replace_file, sync_file
from aimbot_lab.tracking.journal import JOURNAL_NAME, RESERVE_NAME, count_waiting, detach_growing
from aimbot_lab.tracking.ownership import (
    LEASE_SECONDS,
    OWNER_NAME,
    UNKNOWN,
    Hold,
    Owner,
    forget_locks,
    is_free,
    lease_left,
    read_owner,
    take_hold,
    wait_for,
    write_owner,
)
from aimbot_lab.tracking.tracker import RunStatus

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
        """Whether no process writes the run: see `ownership.is_free`."""
        return is_free(self.path, self.owner)

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

    def settle(self, status: RunStatus) -> None:
        """Note that the store has everything of the run, which ended with `status`.

        What is left is deleted, unless the run can be resumed.
        """
        if self._was_taken_over():
            self._let_go()
            return
        if status == "FINISHED" or not self.checkpoints.is_dir():
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
            before = None if was_free else (self.path / OWNER_NAME).read_bytes()
            taken, hold = take_hold(self.path, owner)
        except OSError as error:
            raise disk_error(self.path, error) from error
        folder = replace(self, owner=taken, hold=hold)
        hold.before = before
        try:
            if before is not None:
                wait_for(self.path, self.owner)
            if was_free and self.owner.is_on_this_machine():
                forget_locks(self.path, keep=taken)
            elif is_free(self.path, self.owner):
                folder.part()
        except BaseException:
            folder.give_back()
            raise
        return folder

    def part(self) -> None:
        """Have an owner before this one, which may still live, write nothing into this folder.

        Its own files are taken away, so that what it may be writing at this moment arrives
        nowhere. Raises StoreError where the disk refuses.
        """
        journal = self.path / JOURNAL_NAME
        try:
            if journal.exists():
                replace_file(journal, journal.read_bytes())
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
    for folder in run_folders(data_folder):
        if folder.is_free and not (folder.path / _SETTLED_NAME).exists():
            yield folder


def run_folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    """All folders that have an owner, be its file damaged.

    Half-deleted ones are deleted on the way, as are those whose process died before it had
    written that it owns them.
    """
    for path in _paths(data_folder):
        if path.name.startswith(_DONE) or _is_stillborn(path):
            shutil.rmtree(path, ignore_errors=True)
    yield from _folders(data_folder)


def damaged_owner_files(data_folder: DataFolder) -> list[Path]:
    """The owner files that can't be read, whose runs are listed all the same; changes nothing."""
    return [one.path / OWNER_NAME for one in _folders(data_folder) if one.owner.is_unknown]


def _folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    for path in _paths(data_folder):
        file = path / OWNER_NAME
        if path.name.startswith(_DONE) or not path.is_dir():
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
        raise ConfigurationError(f"{run!r}: several running runs begin so; give more of the id")
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
            f"run {folder.run_id} is still being trained by {who}; "
            f"end that process first, or train on here and have it stop there: {way}"
        )
    raise ConfigurationError(
        f"run {folder.run_id} may still be being trained by {who}{_until(folder)}; "
        f"if that process is dead, at once by: {way}"
    )


def _until(folder: RunFolder) -> str:
    """What is known of an owner's lease."""
    if folder.owner.lock is None:
        return ", by an older version, which renews no lease"
    if not (folder.path / folder.owner.lock).exists():
        return ", whose lock file was deleted"
    left = max(lease_left(folder.path, folder.owner), 0.0)
    return (
        f", which renewed its lease {LEASE_SECONDS - left:.0f} s ago: it can be resumed in "
        f"{left:.0f} s unless it is renewed again"
    )
