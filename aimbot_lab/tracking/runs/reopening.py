"""Resuming a tracked run: the same run in its store, the same journal."""

from typing import TYPE_CHECKING

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.address import kept_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.file_lock import exclusive
from aimbot_lab.tracking.journal.outage import Notify, never_raising, silent
from aimbot_lab.tracking.journal_tracker import JournalTracker, RunAddress, start_tracker
from aimbot_lab.tracking.runs.owner import OWNER_TAG, Owner, this_process
from aimbot_lab.tracking.runs.ownership import LEASE_SECONDS, OWNER_NAME, lease_left
from aimbot_lab.tracking.runs.run_folder import RunFolder, run_folders
from aimbot_lab.tracking.tracker import Tracker

if TYPE_CHECKING:
    from aimbot_lab.tracking.mlflow_store import MlflowStore


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


def claim_run(
    data_folder: DataFolder,
    run_id: str,
    *,
    take_over: bool = False,
    tracking_uri: str | None = None,
) -> RunFolder:
    """The folder of a run, which this process owns until it releases it.

    With `take_over` also where another process may still train it, which then stops. Where the
    file that names its store is damaged, that is the one at `tracking_uri`, None for the embedded
    one. Raises ConfigurationError where the run has no folder here or another process has it,
    StoreError where the disk refuses; then its owner has it still.
    """
    # Held by whoever closes dead runs or takes one over.
    with exclusive(data_folder.orphan_lock):
        folder = _folder_of(data_folder, run_id)
        if not take_over:
            refuse_unless_free(folder)
        return folder.taken_over(_successor(folder, tracking_uri))


def reopen_run(
    data_folder: DataFolder,
    run_id: str,
    *,
    claimed: RunFolder | None = None,
    on_outage: Notify = silent,
) -> Tracker:
    """A tracker that resumes a run of this data folder, on the store where it was started.

    The run may be `claimed` already, else it is now. What it had logged before it does not log
    again. `on_outage` is as for `open_run`.
    Raises ConfigurationError where the run has no folder here or another process has it, and
    StoreError where the store can't be used or has no such run; then nothing has changed. Where
    the disk refuses, which is a StoreError too, what was claimed here is given back, be it to an
    owner that may live; what the caller claimed is the caller's to give back.
    """
    found = claimed or _folder_of(data_folder, run_id)
    store, run = _stored(data_folder, run_id, found.owner.tracking_uri)
    folder = claimed or claim_run(data_folder, run_id)
    try:
        if folder.hold is not None and folder.hold.before is not None:
            folder.part()
        folder.unsettle()
        data_folder.drop_unfinished_copies(run_id)
        tracker = _start(run, folder, store, on_outage=on_outage)
    except BaseException:
        if claimed is None:
            folder.give_back()
        raise
    tracker.set_tags({OWNER_TAG: folder.owner.label})
    return tracker


def check_reopening(
    data_folder: DataFolder, run_id: str, *, tracking_uri: str | None = None
) -> None:
    """Raise what `reopen_run` would where the run's folder or store is missing; changes nothing.

    `tracking_uri` is as for `claim_run`.
    """
    owner = _successor(_folder_of(data_folder, run_id), tracking_uri)
    _stored(data_folder, run_id, owner.tracking_uri)


def _folder_of(data_folder: DataFolder, run_id: str) -> RunFolder:
    folder = find_run_folder(data_folder, run_id)
    if folder is None:
        raise ConfigurationError(f"run {run_id} has no folder in {data_folder.runs}")
    return folder


def _stored(
    data_folder: DataFolder, run_id: str, uri: str | None
) -> tuple["MlflowStore", RunAddress]:
    """The store at `uri`, None for the embedded one, and where the run is found in it."""
    address = kept_address(data_folder, uri)
    from aimbot_lab.tracking.mlflow_store import connect

    store = connect(data_folder, address)
    return store, RunAddress(run_id, store.experiment_of(run_id), address.shown)


def _successor(folder: RunFolder, tracking_uri: str | None) -> Owner:
    before = folder.owner
    if before.is_unknown:
        return this_process(str(folder.run_id), tracking_uri)
    return this_process(before.token, before.tracking_uri)


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


def _start(
    run: RunAddress, folder: RunFolder, store: "MlflowStore", *, on_outage: Notify
) -> JournalTracker:
    sink = store.run(run.run_id, folder.path)
    return start_tracker(run, folder, sink=sink, notify=never_raising(on_outage), resumed=True)
