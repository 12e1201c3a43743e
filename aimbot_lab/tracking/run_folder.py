"""A run's folder while its store does not have everything: owner and journal.

`opening-TOKEN` until the store has given the run its id, then named by that id, `done-ID` while
it is deleted.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.durable import disk_error, sync_file
from aimbot_lab.tracking.owner import Owner, read_owner, write_owner

_OPENING = "opening-"
_DONE = "done-"
_OWNER_NAME = "owner.json"


@dataclass(frozen=True)
class RunFolder:
    """One run's folder and who owns it."""

    path: Path
    owner: Owner

    @property
    def run_id(self) -> str | None:
        """The run's id, None where the owner had not yet learned it."""
        return None if self.path.name.startswith(_OPENING) else self.path.name

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
            write_owner(self.path / _OWNER_NAME, replace(self.owner, pid=None))

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
        write_owner(path / _OWNER_NAME, owner)
    except OSError as error:
        raise disk_error(path, error) from error
    return RunFolder(path, owner)


def living_folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    """The folders whose owner is a living process of this machine; changes nothing."""
    if not data_folder.runs.is_dir():
        return
    for path in sorted(data_folder.runs.iterdir()):
        owner = None if path.name.startswith(_DONE) else read_owner(path / _OWNER_NAME)
        if owner is not None and owner.is_here() and not owner.is_gone():
            yield RunFolder(path, owner)


def left_over_folders(data_folder: DataFolder) -> Iterator[RunFolder]:
    """The folders whose owner is gone; half-deleted ones are deleted on the way."""
    if not data_folder.runs.is_dir():
        return
    for path in sorted(data_folder.runs.iterdir()):
        if path.name.startswith(_DONE):
            shutil.rmtree(path, ignore_errors=True)
            continue
        owner = read_owner(path / _OWNER_NAME)
        if owner is not None and owner.is_gone():
            yield RunFolder(path, owner)
