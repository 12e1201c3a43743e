"""Closing the runs of dead processes, and delivering what their journals still hold."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.tracking.address import kept_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.durable import exclusive
from aimbot_lab.tracking.journal import EndEntry, Journal, growing_entries
from aimbot_lab.tracking.ownership import this_process
from aimbot_lab.tracking.run_folder import RunFolder, left_over_folders
from aimbot_lab.tracking.sender import EntrySink, Refuse, deliver_batch, send_files, send_group
from aimbot_lab.tracking.store_errors import FilesHeldError, RunRefusedError
from aimbot_lab.tracking.tracker import RunStatus

if TYPE_CHECKING:
    from aimbot_lab.tracking.mlflow_store import MlflowStore


StatusOf = Callable[[RunFolder], RunStatus]
OnFault = Callable[[str, str], None]  # is told a run's id, and why something of it did not arrive


def killed(_folder: RunFolder) -> RunStatus:
    """The status of a run whose process died, as far as tracking knows."""
    return "KILLED"


def ignore_fault(_run_id: str, _reason: str) -> None:
    """Do nothing about a fault."""


def close_orphan_runs(
    data_folder: DataFolder, *, status_of: StatusOf = killed, on_fault: OnFault = ignore_fault
) -> list[str]:
    """The ids of the runs whose dead owners had not ended them; now they have ended.

    Each with the status that `status_of` gives. Those with a checkpoint can still be resumed.

    Delivers whatever journals of dead owners hold, and of runs that ended while their store was
    down or did not take them. What can't be delivered now stays for the next call; no error is
    raised for it, but `on_fault` is called. Costs next to nothing where nothing is left over. Any
    number of processes may call it at once; one works, the others return at once.
    """
    if not any(left_over_folders(data_folder)):
        return []
    closed: list[str] = []
    stores: dict[str | None, MlflowStore] = {}
    unreachable: dict[str | None, str] = {}
    with suppress(LabError), exclusive(data_folder.orphan_lock, wait=False):
        for folder in left_over_folders(data_folder):
            uri, fault_of = folder.owner.tracking_uri, partial(on_fault, folder.run_id or "")
            if uri in unreachable:
                fault_of(unreachable[uri])
                continue
            try:
                stores[uri] = stores.get(uri) or _connect(data_folder, uri)
                if folder.run_id is not None:
                    data_folder.drop_unfinished_copies(folder.run_id)
                closed += _settle(folder, stores[uri], status_of, fault_of)
            except (RunRefusedError, FilesHeldError) as error:  # other runs may be taken
                fault_of(str(error))
            except LabError as error:
                unreachable[uri] = str(error)
                fault_of(str(error))
    return closed


def _connect(data_folder: DataFolder, uri: str | None) -> "MlflowStore":
    from aimbot_lab.tracking.mlflow_store import connect

    return connect(data_folder, kept_address(data_folder, uri))


def _settle(
    folder: RunFolder, store: "MlflowStore", status_of: StatusOf, refuse: Refuse
) -> list[str]:
    run_id = folder.run_id or store.find_run(folder.owner.token)
    if run_id is None:
        folder.remove()
        return []
    if folder.run_id is None:
        folder = folder.named(run_id)
    if folder.owner.pid is not None and not folder.owner.is_on_this_machine():
        # Its lease is over, but it may live and come back: then it finds that it has lost the run.
        folder = folder.taken_over(this_process(folder.owner.token, folder.owner.tracking_uri))
    sink = store.run(run_id, folder.path)
    try:
        had_ended, ending = _deliver(folder, sink, status_of, refuse)
    except LabError:
        if folder.hold is not None:
            folder.release()
        raise
    folder.settle(ending.status)
    is_news = not had_ended or ending.status == "KILLED"
    return [run_id] if folder.owner.pid is not None and is_news else []


def _deliver(
    folder: RunFolder, sink: EntrySink, status_of: StatusOf, refuse: Refuse
) -> tuple[bool, EndEntry]:
    """Whether the run's own process had ended it, and its end, which the store has now.

    Raises FilesHeldError where the store has all but files.
    """
    journal = Journal(folder.path)
    fault: StoreError | None = None
    try:
        while journal.entries_wait or (journal.files_wait and fault is None):
            try:
                deliver_batch(journal, sink, refuse=refuse, with_files=fault is None)
            except FilesHeldError as error:
                fault = error
        had_ended, ending = journal.ending is not None, journal.ending
        if ending is None:  # not through the journal: the disk may be full
            ending = EndEntry(status_of(folder), journal.written_ms)
            growing = growing_entries(folder.path)
            fault = fault or send_files(journal, sink, growing)
            send_group(sink, [ending], refuse)
        if fault is not None:
            raise FilesHeldError(str(fault)) from fault
        return had_ended, ending
    finally:
        journal.close()
