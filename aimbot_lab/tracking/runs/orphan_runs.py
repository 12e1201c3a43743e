"""Closing the runs of dead processes, and delivering what their journals still hold."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.tracking.address import TrackingAddress, embedded_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.delivery import EntrySink, deliver_batch, send_group
from aimbot_lab.tracking.journal.entries import EndEntry
from aimbot_lab.tracking.journal.file_lock import exclusive
from aimbot_lab.tracking.journal.growing_files import growing_entries
from aimbot_lab.tracking.journal.journal import Journal
from aimbot_lab.tracking.runs.owner import this_process
from aimbot_lab.tracking.runs.run_folder import RunFolder, left_over_folders
from aimbot_lab.tracking.tracker import RunStatus

if TYPE_CHECKING:
    from aimbot_lab.tracking.mlflow_store import MlflowStore


StatusOf = Callable[[RunFolder], RunStatus]


def killed(_folder: RunFolder) -> RunStatus:
    """The status of a run whose process died, as far as tracking knows."""
    return "KILLED"


def close_orphan_runs(data_folder: DataFolder, *, status_of: StatusOf = killed) -> list[str]:
    """The ids of the runs whose dead owners had not ended them; now they have ended.

    Each with the status that `status_of` gives. Those with a checkpoint can still be resumed.

    Delivers whatever journals of dead owners hold, and of runs that ended while their store was
    down. What can't be delivered now stays for the next call; no error is raised for it. Costs
    next to nothing where nothing is left over. Any number of processes may call it at once; one
    works, the others return at once.
    """
    if not any(left_over_folders(data_folder)):
        return []
    closed: list[str] = []
    stores: dict[str | None, MlflowStore] = {}
    unreachable = set()
    with suppress(LabError), exclusive(data_folder.orphan_lock, wait=False):
        for folder in left_over_folders(data_folder):
            uri = folder.owner.tracking_uri
            if uri in unreachable:
                continue
            try:
                stores[uri] = stores.get(uri) or _connect(data_folder, uri)
                if folder.run_id is not None:
                    data_folder.drop_unfinished_copies(folder.run_id)
                closed += _settle(folder, stores[uri], status_of)
            except LabError:
                unreachable.add(uri)
    return closed


def _connect(data_folder: DataFolder, uri: str | None) -> "MlflowStore":
    from aimbot_lab.tracking.mlflow_store import connect

    address = TrackingAddress(uri, embedded=False) if uri else embedded_address(data_folder)
    return connect(data_folder, address)


def _settle(folder: RunFolder, store: "MlflowStore", status_of: StatusOf) -> list[str]:
    run_id = folder.run_id or store.find_run(folder.owner.token)
    if run_id is None:
        folder.remove()
        return []
    if folder.run_id is None:
        folder = folder.named(run_id)
    if folder.owner.pid is not None and not folder.owner.is_on_this_machine():
        # Its lease is over, but it may live and come back: then it finds that it has lost the run.
        folder = folder.taken_over(this_process(folder.owner.token, folder.owner.tracking_uri))
    had_ended, ending = _deliver(folder, store.run(run_id, folder.path), status_of)
    folder.settle(ending.status)
    is_news = not had_ended or ending.status == "KILLED"
    return [run_id] if folder.owner.pid is not None and is_news else []


def _deliver(folder: RunFolder, sink: EntrySink, status_of: StatusOf) -> tuple[bool, EndEntry]:
    """Whether the run's own process had ended it, and its end, which the store has now."""
    journal = Journal(folder.path)
    try:
        while not journal.is_delivered:
            deliver_batch(journal, sink)
        if journal.ending is not None:
            return True, journal.ending
        # Not through the journal: the disk may be full.
        ending = EndEntry(status_of(folder), journal.written_ms)
        send_group(sink, growing_entries(folder.path))
        send_group(sink, [ending])
        return False, ending
    finally:
        journal.close()
