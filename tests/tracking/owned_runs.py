"""Runs of this process, and how it looks from elsewhere."""

import json
import platform

from aimbot_lab.tracking import run_folder as owner_module
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
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
