"""Run folders as the death of their process leaves them."""

import os
from dataclasses import replace
from pathlib import Path

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import (
    LEASE_SECONDS,
    Owner,
    RunFolder,
    create_run_folder,
    read_owner,
    write_owner,
)


def leave_folder(data_folder: DataFolder, owner: Owner) -> RunFolder:
    """A folder that `owner` held when it died: the system has freed its lock."""
    folder = create_run_folder(data_folder, owner)
    assert folder.hold is not None
    folder.hold.release()
    return replace(folder, hold=None)


def leave_elsewhere(folder: Path, owner: Owner) -> Owner:
    """Have a process of another machine, which may live or not, own the run in `folder`."""
    elsewhere = replace(
        owner, host="elsewhere", boot="another boot", lock="lock-elsewhere", locked=True
    )
    (folder / "lock-elsewhere").touch()
    write_owner(folder / "owner.json", elsewhere)
    return elsewhere


def let_lease_end(folder: Path) -> None:
    """Set the last renewal of the owner of `folder` back by more than a lease."""
    owner = read_owner(folder / "owner.json")
    assert owner is not None
    lock = folder / str(owner.lock)
    long_ago = lock.stat().st_mtime - LEASE_SECONDS - 1.0
    os.utime(lock, (long_ago, long_ago))
