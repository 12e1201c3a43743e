"""Runs of this process, how it looks from elsewhere, and what its death leaves."""

import json
import os
import platform
from dataclasses import replace
from pathlib import Path

from aimbot_lab.tracking import run_folder as owner_module
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.run_folder import (
    LEASE_SECONDS,
    Owner,
    RunFolder,
    create_run_folder,
    read_owner,
    write_owner,
)
from aimbot_lab.tracking.settings import TrackingSettings


def seen_from(monkeypatch, *, host=None, namespace=None, boot=None):
    """Have this process look as one elsewhere looks to the others."""
    if host is not None:
        monkeypatch.setattr(platform, "node", lambda: host)
    if namespace is not None:
        monkeypatch.setattr(owner_module, "_pid_namespace", lambda: namespace)
        monkeypatch.setattr(owner_module.psutil, "Process", _no_process)  # of that number
    if boot is not None:
        monkeypatch.setattr(owner_module, "_boot_id", lambda: boot)


def _no_process(pid=None):
    raise owner_module.psutil.NoSuchProcess(pid)


def begun(data_folder):
    """A run of this process with a folder for checkpoints, and a metric."""
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("owned"))
    data_folder.run_folder(tracker.run_id).joinpath("checkpoints").mkdir()
    tracker.log_metrics(10, {"a": 1.0})
    return tracker


def journal_of(data_folder, run_id):
    lines = (data_folder.run_folder(run_id) / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def leave_folder(data_folder: DataFolder, owner: Owner) -> RunFolder:
    """A folder that `owner` held when it died: the system has freed its lock."""
    folder = create_run_folder(data_folder, owner)
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
    lock = folder / str(owner.lock)
    long_ago = lock.stat().st_mtime - LEASE_SECONDS - 1.0
    os.utime(lock, (long_ago, long_ago))
