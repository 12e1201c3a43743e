"""How to look at the runs: MLflow's own web page, started lean, and the way to what counts."""

import http.client
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder, choose_address
from aimbot_lab.tracking.journal_tracker import open_store
from aimbot_lab.tracking.mlflow_app import APP_NAME, QUIET, TOKEN_VARIABLE, VIEW, is_installed
from aimbot_lab.tracking.tracker import RunSummary

# Without these a server starts ten processes for features that training does not use.
# MLflow's page has a part for training and one for language models, which it shows by default.
_TRAINING = "workflowType=machine_learning"
_LEAN = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_ENABLE_AI_GATEWAY": "false"}


class UiCommand(NamedTuple):
    """A process to start, and where its page is then found."""

    arguments: list[str]
    environment: Mapping[str, str]
    address: str  # with the token, which opens the page to anyone who has it

    def answers(self) -> bool:
        """Whether its page is there."""
        at = urlsplit(self.address)
        connection = http.client.HTTPConnection(str(at.hostname), at.port, timeout=1.0)
        try:
            connection.request("GET", f"{at.path}/health")
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True


def page_of(runs: Sequence[RunSummary]) -> str:
    """The part of MLflow's page that shows `runs`, to be put behind its address.

    One run: its own charts. Several: charts of these alone, in their experiment, or in all of
    theirs. None: the list of experiments.
    """
    if not runs:
        return f"/#/experiments?{_TRAINING}"
    experiments = list(dict.fromkeys(run.experiment_id for run in runs))
    if len(runs) == 1:
        return f"/#/experiments/{experiments[0]}/runs/{runs[0].run_id}/model-metrics?{_TRAINING}"
    ids = ", ".join(f"'{run_id}'" for run_id in dict.fromkeys(run.run_id for run in runs))
    shown = f"{_TRAINING}&compareRunsMode=CHART&searchFilter={_quoted(f'run_id IN ({ids})')}"
    if len(experiments) == 1:
        return f"/#/experiments/{experiments[0]}/runs?{shown}"
    listed = ",".join(f'"{experiment}"' for experiment in experiments)
    return f"/#/compare-experiments/s?experiments={_quoted(f'[{listed}]')}&{shown}"


def page_of_artifact(run: RunSummary, name: str) -> str:
    """A link, from the page of `run`, to the part of MLflow's page that shows its file `name`."""
    page = f"#/experiments/{run.experiment_id}/runs/{run.run_id}"
    return f"{page}/artifacts/{quote(name)}?{_TRAINING}"


def page_of_experiment(run: RunSummary) -> str:
    """The part of MLflow's page that charts all runs of the experiment of `run`."""
    shown = f"{_TRAINING}&compareRunsMode=CHART&viewStateShareKey={VIEW}"
    return f"/#/experiments/{run.experiment_id}/runs?{shown}"


def _quoted(text: str) -> str:
    return quote(text, safe="")


def ui_command(
    data_folder: DataFolder,
    *,
    tracking_uri: str | None = None,
    host: str = "127.0.0.1",
    port: int = 5000,
) -> UiCommand:
    """The command that serves the runs of the store that counts; the store is made if missing.

    Each has a new token. Raises ConfigurationError where the runs are on a tracking server, which
    has its own page, and where the guard is not installed, and StoreError where the store can't be
    used.
    """
    address = choose_address(data_folder, explicit=tracking_uri)
    if address.is_server:
        raise ConfigurationError(f"the runs are on {address.shown}: open that address in a browser")
    address.require_database()
    if not is_installed():
        raise ConfigurationError(
            "this installation of aimbot-lab is older than its code and has no guard for MLflow's "
            "page: install it again, a clone by pip install --editable ."
        )
    store = open_store(data_folder, address)
    for experiment in store.client.search_experiments():
        store.experiment_id(experiment.name)  # gives it its tags, where it is older than these
    server = [sys.executable, "-m", "mlflow", "server", "--app-name", APP_NAME, "--workers", "1"]
    token = secrets.token_urlsafe(24)
    # By environment, because everyone sees arguments, and the address may hold a password.
    environment = {
        **QUIET,
        **os.environ,
        **_LEAN,
        "MLFLOW_BACKEND_STORE_URI": address.uri,
        "MLFLOW_DEFAULT_ARTIFACT_ROOT": data_folder.artifacts.as_uri(),
        TOKEN_VARIABLE: token,
    }
    named = f"[{host}]" if ":" in host else host or "0.0.0.0"
    arguments = [*server, "--host", host, "--port", str(port)]
    return UiCommand(arguments, environment, f"http://{named}:{port}/{token}")
