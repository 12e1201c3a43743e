"""Runs that are over and have not wholly reached their store."""

from dataclasses import dataclass

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.journal import count_waiting
from aimbot_lab.tracking.runs.run_folder import left_over_folders


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
