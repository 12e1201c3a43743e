"""Closing the runs of dead processes, and delivering what their journals still hold."""

from contextlib import suppress
from typing import TYPE_CHECKING

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.tracking.address import TrackingAddress, embedded_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.delivery import EntrySink, deliver_helping, send_group
from aimbot_lab.tracking.entries import EndEntry
from aimbot_lab.tracking.file_lock import exclusive
from aimbot_lab.tracking.growing_files import growing_entries
from aimbot_lab.tracking.journal import Journal
from aimbot_lab.tracking.run_folder import RunFolder, left_over_folders

if TYPE_CHECKING:
    from aimbot_lab.tracking.mlflow_store import MlflowStore


def reap_dead_runs(data_folder: DataFolder) -> list[str]:
    """The ids of the runs whose dead owners had not ended them; they are now KILLED.

    Those with a checkpoint can still be resumed.

    Delivers whatever journals of dead owners hold, and of runs that ended while their store was
    down. What can't be delivered now stays for the next call; no error is raised for it. Costs
    next to nothing where nothing is left over. Any number of processes may call it at once; one
    works, the others return at once.
    """
    if not any(left_over_folders(data_folder)):
        return []
    killed = []
    stores: dict[str | None, MlflowStore] = {}
    unreachable = set()
    with suppress(LabError), exclusive(data_folder.reaper_lock, wait=False):
        for folder in left_over_folders(data_folder):
            uri = folder.owner.tracking_uri
            if uri in unreachable:
                continue
            try:
                stores[uri] = stores.get(uri) or _connect(data_folder, uri)
                killed += _settle(folder, stores[uri])
            except LabError:
                unreachable.add(uri)
    return killed


def _connect(data_folder: DataFolder, uri: str | None) -> "MlflowStore":
    from aimbot_lab.tracking.mlflow_store import connect

    address = TrackingAddress(uri, embedded=False) if uri else embedded_address(data_folder)
    return connect(data_folder, address)


def _settle(folder: RunFolder, store: "MlflowStore") -> list[str]:
    run_id = folder.run_id or store.find_run(folder.owner.token)
    if run_id is None:
        folder.remove()
        return []
    if folder.run_id is None:
        folder = folder.named(run_id)
    ending = _deliver(folder, store.run(run_id, folder.path))
    folder.settle(ending.status)
    return [run_id] if folder.owner.pid is not None and ending.status == "KILLED" else []


def _deliver(folder: RunFolder, sink: EntrySink) -> EndEntry:
    journal = Journal(folder.path)
    try:
        while not journal.is_delivered:
            deliver_helping(journal, sink)
        if journal.ending is not None:
            return journal.ending
        # Not through the journal: the disk may be full.
        ending = EndEntry("KILLED", journal.written_ms)
        send_group(sink, growing_entries(folder.path))
        send_group(sink, [ending])
        return ending
    finally:
        journal.close()
