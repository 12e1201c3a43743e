"""How to look at the runs: MLflow's own web page, started lean."""

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.environment import QUIET

# Without these a server starts ten processes for features that training does not use.
_LEAN = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_ENABLE_AI_GATEWAY": "false"}


class UiCommand(NamedTuple):
    """A process to start, and where its page is then found."""

    arguments: list[str]
    environment: Mapping[str, str]
    address: str


def ui_command(
    data_folder: DataFolder,
    *,
    tracking_uri: str | None = None,
    host: str = "127.0.0.1",
    port: int = 5000,
) -> UiCommand:
    """The command that serves the runs of the store that counts; the store is made if missing.

    Raises ConfigurationError where the runs are on a tracking server, which has its own page,
    and StoreError where the store can't be used.
    """
    address = choose_address(data_folder, explicit=tracking_uri)
    if address.is_server:
        raise ConfigurationError(f"the runs are on {address.shown}: open that address in a browser")
    from aimbot_lab.tracking.mlflow_store import connect

    connect(data_folder, address)
    arguments = [sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port)]
    # By environment, because the address may hold a password and arguments are seen by everyone.
    environment = {
        **QUIET,
        **os.environ,
        **_LEAN,
        "MLFLOW_BACKEND_STORE_URI": address.uri,
        "MLFLOW_DEFAULT_ARTIFACT_ROOT": data_folder.artifacts.as_uri(),
    }
    return UiCommand([*arguments, "--workers", "1"], environment, f"http://{host}:{port}")
