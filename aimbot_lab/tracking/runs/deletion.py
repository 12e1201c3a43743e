"""Deleting runs: in their store, with their files, and what a resumption would need."""

from collections.abc import Sequence
from dataclasses import dataclass

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.history import MAX_RUNS, find_run, list_runs
from aimbot_lab.tracking.runs.orphan_runs import close_orphan_runs
from aimbot_lab.tracking.runs.reopening import find_run_folder, refuse_unless_free
from aimbot_lab.tracking.runs.run_summary import RunSummary
from aimbot_lab.tracking.runs.selection import PARENT


@dataclass(frozen=True)
class Deletion:
    """What would be deleted."""

    named: tuple[RunSummary, ...]
    below: tuple[RunSummary, ...]  # runs of the trials of the sweeps among them

    @property
    def runs(self) -> tuple[RunSummary, ...]:
        """All of them, the lowest first."""
        return (*reversed(self.below), *self.named)


def plan_deletion(
    names: Sequence[str], data_folder: DataFolder, *, tracking_uri: str | None = None
) -> Deletion:
    """The runs that `names` mean, and all that lie below them.

    Raises ConfigurationError where a name means no single run, or where one of the runs may still
    be trained; nothing is deleted then.
    """
    close_orphan_runs(data_folder)
    found = [find_run(data_folder, name, tracking_uri=tracking_uri) for name in names]
    named = {run.run_id: run for run in found}
    below: dict[str, RunSummary] = {}
    runs = list_runs(data_folder, tracking_uri=tracking_uri, max_results=MAX_RUNS)
    level = set(named)
    while level:
        next_level = [run for run in runs if run.tags.get(PARENT) in level]
        below.update({run.run_id: run for run in next_level if run.run_id not in named})
        level = {run.run_id for run in next_level}
    deletion = Deletion(tuple(named.values()), tuple(below.values()))
    for run in deletion.runs:
        _refuse_living(run, data_folder)
    return deletion


def _refuse_living(run: RunSummary, data_folder: DataFolder) -> None:
    folder = find_run_folder(data_folder, run.run_id)
    if folder is not None:
        refuse_unless_free(folder)
    elif run.status == "RUNNING":
        raise ConfigurationError(
            f"run {run.run_id} is RUNNING and has no folder in {data_folder.runs}: it may be "
            "trained elsewhere"
        )


def delete_run(
    run: RunSummary, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> None:
    """Delete `run` in its store, its files, and its checkpoints. Raises StoreError."""
    address = choose_address(data_folder, explicit=tracking_uri)
    from aimbot_lab.tracking.mlflow_store import connect

    folder = find_run_folder(data_folder, run.run_id)
    if folder is not None:
        refuse_unless_free(folder)
    connect(data_folder, address).discard_run(run.run_id)
    if folder is not None:
        folder.remove()
