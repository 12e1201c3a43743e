"""MLflow's own server, with artifacts that it serves, and some that clients reach by themselves.

It is what `mlflow server` starts with one worker; that command itself takes eight seconds longer.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aimbot_lab.tracking.data_folder import DataFolder, embedded_address
from aimbot_lab.tracking.mlflow_store import connect

LEAN = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_ENABLE_AI_GATEWAY": "false"}
OPEN = "open"  # the experiment whose artifacts lie in a folder of that name
HOST = "lab-host"  # a name by which the server knows itself


@contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """The address of the server, which ends with the block; the experiment OPEN is in place."""
    data = DataFolder(folder)
    store = connect(data, embedded_address(data))  # makes the database faster than the server does
    store.client.create_experiment(OPEN, artifact_location=str(folder / OPEN))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["--host", "127.0.0.1", "--port", str(port), "mlflow.server.fastapi_app:app"]
    settings = {
        "_MLFLOW_SERVER_FILE_STORE": data.tracking_uri,
        "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/",
        "_MLFLOW_SERVER_ARTIFACT_DESTINATION": str(folder / "kept"),
        "MLFLOW_SERVER_ALLOWED_HOSTS": f"{HOST}:*,127.0.0.1:*",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", *words],
            env={**os.environ, **LEAN, **settings},
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(process, address)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=300)


def _wait_for(process: subprocess.Popen[bytes], address: str) -> None:
    for _ in range(3000):
        assert process.poll() is None, f"the server ended with code {process.returncode}"
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=60):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError("the server does not answer")
