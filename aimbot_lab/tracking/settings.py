"""Where a run is tracked, as a curriculum says it."""

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from aimbot_lab.foundation.settings import STRICT, dataclass
from aimbot_lab.tracking.address import checked_uri


def _not_blank(name: str) -> str:
    if not name.strip():
        raise ValueError("must not be blank")
    return name


ExperimentName = Annotated[
    str, StringConstraints(min_length=1, max_length=250), AfterValidator(_not_blank)
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TrackingSettings:
    """The experiment that runs are gathered in, and the store that keeps them."""

    experiment: ExperimentName = "aimbot-lab"
    """Name of the MLflow experiment."""
    uri: str | None = None
    """Address of a tracking server or database that replaces the store in the data folder."""
    tensorboard: bool = False
    """Whether the run also keeps its numbers as a TensorBoard event file, among its artifacts."""

    def __post_init__(self) -> None:
        if self.uri is not None:
            checked_uri(self.uri)
