"""Reading runs back from the store that counts."""

from pathlib import Path

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.delivery import StoreRefusedError
from aimbot_lab.tracking.limits import checked_name
from aimbot_lab.tracking.runs.run_summary import MetricPoint, RunSummary
from aimbot_lab.tracking.runs.selection import OWN_TRAINING, is_own_training

LATEST = "latest"
MAX_RUNS = 50_000


def list_runs(
    data_folder: DataFolder,
    *,
    tracking_uri: str | None = None,
    max_results: int = 100,
    condition: str = "",
) -> list[RunSummary]:
    """The newest runs of all experiments, newest first; empty where there is no store yet.

    Only those that fulfil `condition`, a filter of MLflow's. Raises ConfigurationError for an
    address that can't be used, StoreError where the store can't.
    """
    address = choose_address(data_folder, explicit=tracking_uri)
    address.require_database()
    if address.embedded and not data_folder.database.exists():
        return []
    from aimbot_lab.tracking.mlflow_store import connect

    return connect(data_folder, address).runs(max_results, condition)


def list_own_trainings(
    data_folder: DataFolder, *, tracking_uri: str | None = None, max_results: int
) -> list[RunSummary]:
    """The newest trainings that are part of no sweep, newest first. Raises as `list_runs`."""
    try:
        return list_runs(
            data_folder,
            tracking_uri=tracking_uri,
            max_results=max_results,
            condition=OWN_TRAINING,
        )
    except StoreRefusedError:  # servers of older versions know no IS NULL
        found = list_runs(data_folder, tracking_uri=tracking_uri, max_results=MAX_RUNS)
        return [*filter(is_own_training, found)][:max_results]


def find_run(
    data_folder: DataFolder, beginning: str, *, tracking_uri: str | None = None
) -> RunSummary:
    """The one run whose id begins so; "latest" is the newest training of no sweep.

    Raises ConfigurationError where no run or more than one is meant.
    """
    found = list_runs(data_folder, tracking_uri=tracking_uri, max_results=MAX_RUNS)
    newest = next(filter(is_own_training, found), None)
    if beginning == LATEST and newest is not None:
        return newest
    if beginning == LATEST and found:
        raise ConfigurationError("'latest': all runs are a sweep's; give the id of one of these")
    matches = [run for run in found if beginning and run.run_id.startswith(beginning)]
    if len(matches) != 1:
        raise _no_run(beginning, "several runs begin so" if matches else "no such run")
    return matches[0]


def read_run(
    data_folder: DataFolder, run_id: str, *, tracking_uri: str | None = None
) -> RunSummary:
    """The run of that id, however many others there are.

    Raises ConfigurationError where there is none such, StoreError where the store can't.
    """
    if not run_id.isalnum():
        raise _no_run(run_id, "no such run")
    condition = f"attributes.run_id = '{run_id}'"
    for found in list_runs(data_folder, tracking_uri=tracking_uri, condition=condition):
        return found
    raise _no_run(run_id, "no such run")


def _no_run(run: str, reason: str) -> ConfigurationError:
    return ConfigurationError(f"{run!r}: {reason}; aimbot-lab runs lists them")


def metric_history(
    data_folder: DataFolder, run_id: str, *, key: str, tracking_uri: str | None = None
) -> list[MetricPoint]:
    """Every value of a run's metric by rising step; empty where it has none.

    Raises ConfigurationError for an address that can't be used, StoreError where the store can't.
    """
    address = choose_address(data_folder, explicit=tracking_uri)
    address.require_database()
    from aimbot_lab.tracking.mlflow_store import connect

    return connect(data_folder, address).metric_history(run_id, key)


def download_artifact(
    data_folder: DataFolder, run_id: str, *, name: str, tracking_uri: str | None = None
) -> Path:
    """Where the artifact `name` of a run can be read; not to be written to.

    Raises ConfigurationError for an address or a name that can't be used, StoreError where the
    store can't or has no such artifact.
    """
    try:
        checked_name(name)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    address = choose_address(data_folder, explicit=tracking_uri)
    address.require_database()
    from aimbot_lab.tracking.mlflow_store import connect

    return connect(data_folder, address).download(run_id, name)
