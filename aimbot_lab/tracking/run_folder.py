"""A run's folder: owner, journal, and the checkpoints that it can be resumed from.

`opening-TOKEN` until the store has given the run its id, then named by that id, `done-ID` while
it is deleted. It is deleted once the store has everything, unless the run can be resumed; then
it is settled, and nobody but a resumption looks into it.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.durable import disk_error, replace_file, sync_file
from aimbot_lab.tracking.owner import Owner, read_owner, write_owner
from aimbot_lab.tracking.reserve import RESERVE_NAME
from aimbot_lab.tracking.tracker import RunStatus

_OPENING = "opening-"
_DONE = "done-"
OWNER_NAME = "owner.json"
CHECKPOINTS_NAME = "checkpoints"
_SETTLED_NAME = "settled"


@dataclass(frozen=True)
class RunFolder:
    """One run's folder and who owns it."""

    path: Path
    owner: Owner

    @property
    def run_id(self) -> str | None:
        """The run's id, None where the owner had not yet learned it."""
        return None if self.path.name.startswith(_OPENING) else self.path.name

    @property
    def checkpoints(self) -> Path:
        """The folder that whoever trains may make, and keep in it what a resumption needs."""
        return self.path / CHECKPOINTS_NAME

    def named(self, run_id: str) -> "RunFolder":
        """This folder under its run's id. Raises StoreError where the disk refuses."""
        try:
            path = self.path.rename(self.path.with_name(run_id))
            sync_file(path.parent)
        except OSError as error:
            raise disk_error(self.path, error) from error
        return replace(self, path=path)

    def release(self) -> None:
        """Let others deliver what waits here, while this process lives on."""
        # Where the disk refuses, the end of this process does the same.
        with suppress(OSError):
            write_owner(self.path / OWNER_NAME, replace(self.owner, pid=None))

    def settle(self, status: RunStatus) -> None:
        """Note that the store has everything of the run, which ended with `status`.

        What is left is deleted, unless the run can be resumed.
        """
        if status == "FINISHED" or not self.checkpoints.is_dir():
            self.remove()
            return
        # Where the disk refuses, a reaper finds nothing left to send and tries again.
        with suppress(OSError):
            (self.path / RESERVE_NAME).unlink(missing_ok=True)
            replace_file(self.path / _SETTLED_NAME, b"")
        self.release()

    def forget_checkpoints(self) -> None:
        """Delete what a resumption needs."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def taken_over(self, owner: Owner) -> "RunFolder":
        """This folder as `owner`'s. Raises StoreError where the disk refuses."""
        try:
            write_owner(self.path / OWNER_NAME, owner)
            (self.path / _SETTLED_NAME).unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(self.path, error) from error
        return replace(self, owner=owner)

    def remove(self) -> None:
        """Delete the folder; renamed first, so that a half-deleted one is never taken for a run."""
        # Where the disk refuses, a reaper finds nothing left to send and tries again.
        with suppress(OSError):
            done = self.path.rename(self.path.with_name(_DONE + self.path.name))
            shutil.rmtree(done, ignore_errors=True)


def create_run_folder(data_folder: DataFolder, owner: Owner) -> RunFolder:
    """A folder for a run that has no id yet. Raises StoreError where it can't be written."""
    data_folder.create()
    path = data_folder.run_folder(_OPENING + owner.token)
    try:
        path.mkdir()
        write_owner(path / OWNER_NAME, owner)
    except OSError as error:
        raise disk_error(path, error) from error
    return RunFolder(path, owner)


def living_folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    """The folders whose owner is a living process of this machine; changes nothing."""
    if not data_folder.runs.is_dir():
        return
    for path in sorted(data_folder.runs.iterdir()):
        owner = None if path.name.startswith(_DONE) else read_owner(path / OWNER_NAME)
        if owner is not None and owner.is_here() and not owner.is_gone():
            yield RunFolder(path, owner)


def left_over_folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    """The folders whose owner is gone and that hold something for their store.

    Half-deleted ones are deleted on the way.
    """
    for folder in run_folders(data_folder):
        if folder.owner.is_gone() and not (folder.path / _SETTLED_NAME).exists():
            yield folder


def run_folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    """All folders that have an owner; half-deleted ones are deleted on the way."""
    if not data_folder.runs.is_dir():
        return
    for path in sorted(data_folder.runs.iterdir()):
        if path.name.startswith(_DONE):
            shutil.rmtree(path, ignore_errors=True)
            continue
        owner = read_owner(path / OWNER_NAME)
        if owner is not None:
            yield RunFolder(path, owner)
