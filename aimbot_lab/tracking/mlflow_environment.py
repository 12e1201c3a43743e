"""What MLflow reads from the environment before it is imported: no telemetry, no noise."""

import os

# The literal "true": MLflow does not take "1" for DO_NOT_TRACK.
QUIET = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # Standard output is for data.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    # The sender retries by itself; with MLflow's own retries a dead server takes minutes to fail.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


def quieten_mlflow() -> None:
    """Set the variables of `QUIET` that the user has not set; call it before importing mlflow."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
