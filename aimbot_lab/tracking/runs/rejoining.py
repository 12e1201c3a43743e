"""Resuming a run that groups others, such as a sweep's, wherever it was started."""

import uuid

from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.outage import Notify, never_raising, silent
from aimbot_lab.tracking.journal_tracker import RunAddress, start_tracker
from aimbot_lab.tracking.runs.owner import OWNER_TAG, this_process
from aimbot_lab.tracking.runs.run_folder import create_run_folder
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import Tracker


def rejoin_run(
    data_folder: DataFolder,
    settings: TrackingSettings,
    run_id: str,
    *,
    tracking_uri: str | None = None,
    on_outage: Notify = silent,
) -> Tracker:
    """A tracker that resumes the run `run_id`, which is RUNNING again.

    What its last writer left undelivered on this machine must have been delivered before
    (`close_orphan_runs`). Raises ConfigurationError for an address that can't be used, StoreError
    where the store or the data folder can't, where there is no such run, or where a living process
    writes to it.
    """
    address = choose_address(data_folder, explicit=tracking_uri, setting=settings.uri)
    from aimbot_lab.tracking.mlflow_store import connect

    store = connect(data_folder, address)
    owner = this_process(uuid.uuid4().hex, None if address.embedded else address.uri)
    folder = create_run_folder(data_folder, owner)
    try:
        folder = folder.named(run_id)
        run = RunAddress(run_id, store.experiment_of(run_id), address.shown)
        sink = store.run(run_id, folder.path)
        tracker = start_tracker(
            run, folder, sink=sink, notify=never_raising(on_outage), resumed=True
        )
    except BaseException:
        folder.remove()
        raise
    tracker.set_tags({OWNER_TAG: folder.owner.label})
    return tracker
