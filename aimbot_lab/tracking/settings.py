"""Where a run is tracked, as a curriculum says it."""

import os
from dataclasses import field
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import STRICT, dataclass
from aimbot_lab.tracking.data_folder import checked_uri

USUAL_EXPERIMENT = "aimbot-lab"
EXPERIMENT_VARIABLE = "MLFLOW_EXPERIMENT_NAME"
_MAX_NAME = 250  # characters


def _not_blank(name: str) -> str:
    if not name.strip():
        raise ValueError("must not be blank")
    return name


ExperimentName = Annotated[
    str, StringConstraints(min_length=1, max_length=_MAX_NAME), AfterValidator(_not_blank)
]


def _usual_experiment() -> str:
    name = os.environ.get(EXPERIMENT_VARIABLE, "")
    if len(name) > _MAX_NAME:
        raise ConfigurationError(
            f"environment variable {EXPERIMENT_VARIABLE}: must have at most {_MAX_NAME} characters"
        )
    return name if name.strip() else USUAL_EXPERIMENT


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TrackingSettings:
    """The experiment of the runs, and the store that keeps them."""

    experiment: ExperimentName = field(default_factory=_usual_experiment)
    """Name of the MLflow experiment; by default MLFLOW_EXPERIMENT_NAME, else aimbot-lab."""
    uri: str | None = None
    """Address of a tracking server or database that replaces the store in the data folder."""
    tensorboard: bool = False
    """Whether the run also keeps its numbers as a TensorBoard event file, among its artifacts."""

    def __post_init__(self) -> None:
        if self.uri is not None:
            checked_uri(self.uri)
