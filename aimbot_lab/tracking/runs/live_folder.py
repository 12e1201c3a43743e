"""Where a run shows itself while it trains: files that are replaced as a whole."""

from pathlib import Path
from typing import NamedTuple

LIVE_NAME = "live"


class LiveFolder(NamedTuple):
    """The folder `live` of a run's folder; it exists once somebody has watched the run."""

    path: Path

    @classmethod
    def of(cls, run_folder: Path) -> "LiveFolder":
        """That of the run in `run_folder`."""
        return cls(run_folder / LIVE_NAME)

    @property
    def status(self) -> Path:
        """A JSON document: where the training stands."""
        return self.path / "status.json"

    @property
    def agent(self) -> Path:
        """A folder with the newest agent."""
        return self.path / "agent"
