"""Runs that their process left without an end, and how each of them ended."""

from aimbot_lab.experiment.runs.run_record import read_record
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs import orphan_runs as orphans
from aimbot_lab.tracking.runs.run_folder import RunFolder
from aimbot_lab.tracking.tracker import RunStatus


def close_orphan_runs(
    data_folder: DataFolder, *, on_fault: orphans.OnFault = orphans.ignore_fault
) -> list[str]:
    """As `orphans.close_orphan_runs`: FAILED where the steps were spent, else KILLED."""
    return orphans.close_orphan_runs(data_folder, status_of=_status, on_fault=on_fault)


def _status(folder: RunFolder) -> RunStatus:
    record = read_record(folder.checkpoints)
    return "KILLED" if record is None or record.spent_steps is None else "FAILED"
