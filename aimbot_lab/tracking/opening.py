"""A run's tracker: of a new run, of one that is resumed, or of one that groups others.

Each is in the store, in the data folder, and has a thread between the two.
"""

import getpass
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import aimbot_lab
from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking.address import choose_address, kept_address, without_password
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.durable import exclusive
from aimbot_lab.tracking.journal_tracker import RunAddress, start_tracker
from aimbot_lab.tracking.ownership import (
    OWNER_TAG,
    Owner,
    this_process,
)
from aimbot_lab.tracking.run_folder import (
    RunFolder,
    create_run_folder,
    find_run_folder,
    refuse_unless_free,
)
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import (
    MAX_PARAM,
    Notify,
    Tracker,
    checked_key,
    checked_tags,
    never_raising,
    shortened,
    silent,
)
from aimbot_lab.version import code_hash

if TYPE_CHECKING:
    from aimbot_lab.tracking.mlflow_store import MlflowStore


_NOT_HEEDED: Mapping[str, str] = MappingProxyType(
    {
        "MLFLOW_EXPERIMENT_ID": "MLFLOW_EXPERIMENT_NAME or tracking.experiment name the experiment",
        "MLFLOW_RUN_ID": "a training is a new run; aimbot-lab resume resumes one",
    }
)
"""What others who log to MLflow read, and what has its effect here."""


@dataclass(frozen=True)
class RunDescription:
    """What is known of a run when it begins."""

    name: str
    params: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)  # flat
    tags: Mapping[str, str] = field(default_factory=dict)


def open_run(
    data_folder: DataFolder,
    settings: TrackingSettings,
    description: RunDescription,
    *,
    tracking_uri: str | None = None,
    on_outage: Notify = silent,
) -> Tracker:
    """A tracker for a new run, on the store that counts (`choose_address`).

    `on_outage` is called with one line when the store or the disk begins to fail and when it works
    again, and what the end of the run waits for; it may be called from another thread.
    Raises ConfigurationError for an address that can't be used, StoreError where the store or
    the data folder can't, ValueError for a name that MLflow refuses; then no run is left behind.
    """
    texts = {
        checked_key(key): without_password(str(value)) for key, value in description.params.items()
    }
    params = {key: shortened(text, MAX_PARAM) for key, text in texts.items()}
    tags = checked_tags({k: without_password(tag) for k, tag in description.tags.items()})
    address = choose_address(data_folder, explicit=tracking_uri, setting=settings.uri)
    # MLflow takes a second to import: only what needs it pays.
    from aimbot_lab.tracking.mlflow_store import connect

    store = connect(data_folder, address)
    experiment_id = store.experiment_id(settings.experiment)
    owner = this_process(uuid.uuid4().hex, None if address.embedded else address.uri)
    folder = create_run_folder(data_folder, owner)
    try:
        run_id = store.create_run(
            experiment_id, description.name, tags={**tags, **_own_tags(owner)}
        )
        store.log_params(run_id, params)
        folder = folder.named(run_id)
        run = RunAddress(run_id, experiment_id, address.shown)
        sink = store.run(run_id, folder.path)
        notify = never_raising(on_outage)
        for name, instead in _NOT_HEEDED.items():
            if os.environ.get(name):
                notify(f"environment variable {name} is not heeded; {instead}")
        monitor_end = store.monitor_system(run_id, resumed=False)
        tracker = start_tracker(run, folder, sink=sink, notify=notify, events=settings.tensorboard)
        return tracker.finishing(monitor_end)
    except BaseException:
        _undo(store, folder)
        raise


def check_destination(
    data_folder: DataFolder, settings: TrackingSettings, *, tracking_uri: str | None = None
) -> None:
    """Raise ConfigurationError where `open_run` could only fail; asks no server, makes nothing."""
    address = choose_address(data_folder, explicit=tracking_uri, setting=settings.uri)
    file = address.sqlite_file
    if not address.embedded and file is not None and not file.parent.is_dir():
        raise ConfigurationError(
            f"tracking address {address.shown}: there is no folder {file.parent}"
        )
    data_folder.check()


def check_server(
    data_folder: DataFolder, settings: TrackingSettings, *, tracking_uri: str | None = None
) -> None:
    """Raise StoreError where runs would go to a tracking server that does not answer."""
    address = choose_address(data_folder, explicit=tracking_uri, setting=settings.uri)
    if address.is_server:
        from aimbot_lab.tracking.mlflow_store import connect

        connect(data_folder, address)


def _undo(store: "MlflowStore", folder: RunFolder) -> None:
    # Asked by token, because the store may have made the run although the call failed.
    try:
        run_id = store.find_run(folder.owner.token)
        if run_id is not None:
            store.discard_run(run_id)
    except StoreError:
        folder.release()
    else:
        folder.remove()


def _own_tags(owner: Owner) -> dict[str, str]:
    return {
        "mlflow.user": _user_name(),
        "mlflow.source.name": "aimbot-lab",
        "mlflow.source.type": "LOCAL",
        "lab.version": aimbot_lab.__version__,
        "lab.code": code_hash(),
        OWNER_TAG: owner.label,
    }


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a number that has no name.
        return "unknown"


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
    # Held by a process that closes dead runs or takes one over.
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
        sink = store.run(run.run_id, folder.path)
        monitor_end = store.monitor_system(run.run_id, resumed=True)
        tracker = start_tracker(
            run, folder, sink=sink, notify=never_raising(on_outage), resumed=True
        )
        tracker = tracker.finishing(monitor_end)
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
