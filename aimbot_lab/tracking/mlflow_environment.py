"""What MLflow reads before it is imported, and how its page shows an experiment of ours."""

import json
import os
from collections.abc import Mapping
from types import MappingProxyType

from aimbot_lab.foundation import metric_names as names

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


VIEW = "aimbot-lab"
_COLUMNS = (
    f"metrics.`{names.LEARNING_WIN_RATE}`",
    f"metrics.`{names.EVAL_WIN_RATE}`",
    "tags.`lab.ended`",
    "attributes.`Duration`",
)
EXPERIMENT_TAGS: Mapping[str, str] = MappingProxyType(
    {
        "mlflow.experimentKind": "custom_model_development",
        f"mlflow.sharedViewState.{VIEW}": json.dumps({"selectedColumns": _COLUMNS}),
    }
)
