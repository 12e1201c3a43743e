"""MLflow's own server, with artifacts that it serves or that clients reach by themselves.

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
from typing import NamedTuple

from aimbot_lab.tracking.data_folder import DataFolder, embedded_address
from aimbot_lab.tracking.mlflow_store import connect

LEAN = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_ENABLE_AI_GATEWAY": "false"}
SERVED, IN_PLACE = "served", "in place"
HOST = "lab-host"  # a name by which only the server in place knows itself


class Servers(NamedTuple):
    """The addresses of two servers."""

    served: str  # hands out artifacts itself
    in_place: str  # only says in which folder they lie


@contextmanager
def mlflow_servers(folder: Path) -> Iterator[Servers]:
    """Both servers, which start at the same time and end with the block."""
    begun = [
        _begin(
            folder / "served",
            _MLFLOW_SERVER_SERVE_ARTIFACTS="true",
            _MLFLOW_SERVER_ARTIFACT_ROOT="mlflow-artifacts:/",
            _MLFLOW_SERVER_ARTIFACT_DESTINATION=str(folder / "kept"),
        ),
        _begin(
            folder / "in-place",
            _MLFLOW_SERVER_ARTIFACT_ROOT=str(folder / "open"),
            MLFLOW_SERVER_ALLOWED_HOSTS=f"{HOST}:*,127.0.0.1:*",
        ),
    ]
    try:
        for process, address in begun:
            _wait_for(process, address)
        yield Servers(*(address for _, address in begun))
    finally:
        for process, _ in begun:
            process.terminate()
        for process, _ in begun:
            process.wait(timeout=300)


def _begin(folder: Path, **settings: str) -> tuple[subprocess.Popen[bytes], str]:
    data = DataFolder(folder)
    connect(data, embedded_address(data))  # makes the database faster than the server does
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings["_MLFLOW_SERVER_FILE_STORE"] = data.tracking_uri
    words = ["--host", "127.0.0.1", "--port", str(port), "mlflow.server.fastapi_app:app"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", *words],
            env={**os.environ, **LEAN, **settings},
            stdout=log,
            stderr=log,
        )
    return process, f"http://127.0.0.1:{port}"


def _wait_for(process: subprocess.Popen[bytes], address: str) -> None:
    for _ in range(3000):
        assert process.poll() is None, f"the server ended with code {process.returncode}"
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=60):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError("the server does not answer")
