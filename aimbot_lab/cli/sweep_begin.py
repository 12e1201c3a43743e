"""How a sweep begins: all is checked, then its workers have a place, then it is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from aimbot_lab.experiment.config.validation import always
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.sweep.coordinator import StartWorkers
from aimbot_lab.sweep.document import LoadedSweep, load_sweep
from aimbot_lab.sweep.record import SweepRecord, begin
from aimbot_lab.sweep.storage import StorageAddress, check_storage, choose_storage, open_storage
from aimbot_lab.sweep.worker_pool import WorkerPool
from aimbot_lab.tracking.data_folder import DataFolder, locate_data_folder
from aimbot_lab.tracking.runs.opening import check_destination, check_server


def checked(
    sweep: str, values: dict[str, Any], *, where: tuple[str | None, Path | None, str | None]
) -> tuple[LoadedSweep, DataFolder, StorageAddress]:
    """The sweep, its data folder and its storage, once all are found to be usable."""
    storage, data_dir, tracking_uri = where
    loaded = load_sweep(sweep, values, may_run=always)
    folder = locate_data_folder(data_dir)
    check_destination(folder, loaded.config.tracking, tracking_uri=tracking_uri)
    address = choose_storage(folder, loaded.config.name, storage)
    check_storage(address)
    check_server(folder, loaded.config.tracking, tracking_uri=tracking_uri)
    return loaded, folder, address


@contextmanager
def placed(on: str | None, address: StorageAddress, workers: int) -> Iterator[StartWorkers]:
    """What starts workers: on this machine, or where Ray places them."""
    if on is None:
        yield WorkerPool
        return
    if not address.is_shared:
        raise ConfigurationError(
            f"--on {on}: needs --storage postgresql://USER@HOST/DATABASE: "
            "workers on other machines can't open a file of this one"
        )
    from aimbot_lab.cluster.connection import connected
    from aimbot_lab.cluster.sweep_workers import RayWorkers

    click.echo("Ray opens ports and encrypts nothing: use it in a network you trust", err=True)
    with connected(workers) as ray:
        yield partial(RayWorkers, ray)


def begun(
    loaded: LoadedSweep,
    address: StorageAddress,
    trials: int | None,
    *,
    resume: bool,
    tags: dict[str, str],
) -> SweepRecord:
    """The record of a sweep that begins or is joined."""
    joined = resume or address.is_shared
    record = begin(open_storage(address), loaded, resume=joined, trials=trials, tags=tags)
    for failed in record.retry() if resume else ():
        click.echo(one_line(f"{failed.line}; it is run again"), err=True)
    known = len(record.search_queue().trials)
    if known > record.trials:
        click.echo(f"{known} trials have begun already: no other one begins", err=True)
    return record
