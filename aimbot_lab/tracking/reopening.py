"""Going on with a run that was tracked before: the same run in its store, the same journal."""

from typing import TYPE_CHECKING

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.address import TrackingAddress, embedded_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.file_lock import exclusive
from aimbot_lab.tracking.journal_tracker import JournalTracker, RunAddress, start_tracker
from aimbot_lab.tracking.owner import OWNER_TAG, this_process
from aimbot_lab.tracking.run_folder import RunFolder, run_folders
from aimbot_lab.tracking.tracker import Tracker
from aimbot_lab.tracking.trouble import Tell, silent, unfailing

if TYPE_CHECKING:
    from aimbot_lab.tracking.mlflow_store import MlflowStore


def find_run_folder(data_folder: DataFolder, run_id: str) -> RunFolder | None:
    """The folder of a run in this data folder, None where there is none."""
    return next((one for one in run_folders(data_folder) if one.run_id == run_id), None)


def refuse_unless_free(folder: RunFolder) -> None:
    """Raise ConfigurationError where the run's owner may still be alive."""
    owner = folder.owner
    if not owner.is_gone():
        raise ConfigurationError(
            f"run {folder.run_id} is still being trained by process {owner.pid} on {owner.host}"
        )


def reopen_run(data_folder: DataFolder, run_id: str, *, on_trouble: Tell = silent) -> Tracker:
    """A tracker that goes on with a run of this data folder, on the store where it began.

    What it had logged before it does not log again. `on_trouble` is as for `open_run`.
    Raises ConfigurationError where the run has no folder here or another process has it, and
    StoreError where the store can't be used or has no such run; then nothing has changed.
    """
    found = find_run_folder(data_folder, run_id)
    if found is None:
        raise ConfigurationError(f"run {run_id} has no folder in {data_folder.runs}")
    uri = found.owner.tracking_uri
    address = TrackingAddress(uri, embedded=False) if uri else embedded_address(data_folder)
    from aimbot_lab.tracking.mlflow_store import connect

    store = connect(data_folder, address)
    run = RunAddress(run_id, store.experiment_of(run_id), address.shown)
    folder = _take_over(data_folder, found)
    try:
        tracker = _start(run, folder, store, on_trouble=on_trouble)
    except BaseException:
        folder.release()
        raise
    tracker.set_tags({OWNER_TAG: folder.owner.label})
    return tracker


def _take_over(data_folder: DataFolder, folder: RunFolder) -> RunFolder:
    # Held by whoever closes dead runs or takes one over.
    with exclusive(data_folder.reaper_lock):
        now = find_run_folder(data_folder, folder.path.name)
        if now is None:
            raise ConfigurationError(f"run {folder.run_id} has just been closed for good")
        refuse_unless_free(now)
        return now.taken_over(this_process(now.owner.token, now.owner.tracking_uri))


def _start(
    run: RunAddress, folder: RunFolder, store: "MlflowStore", *, on_trouble: Tell
) -> JournalTracker:
    sink = store.run(run.run_id, folder.path)
    return start_tracker(run, folder, sink=sink, tell=unfailing(on_trouble), resumed=True)
