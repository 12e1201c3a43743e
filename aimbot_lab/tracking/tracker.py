"""The seam that everything is logged through, whatever keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

RunStatus = Literal["FINISHED", "FAILED", "KILLED"]
NOTE_TAG = "mlflow.note.content"


@dataclass(frozen=True)
class FinishReport:
    """How much of a run has reached its store when it ended."""

    status: RunStatus
    waiting: int = 0  # entries that stay in the journal until `close_orphan_runs` delivers them
    refused: int = 0  # entries that the store will never take, for example of a deleted run
    dropped: int = 0  # entries that the local disk could not keep
    failure: str | None = None  # why entries wait, were refused or were dropped

    @property
    def complete(self) -> bool:
        """Whether everything has arrived."""
        return not (self.waiting or self.refused or self.dropped)


class Tracker(Protocol):
    """One run's numbers, tags, texts and files.

    What a `log_` or `set_` call was given is durable when it returns, and arrives in the store
    in the order of the calls. None of them waits for the store or raises for its outages or
    those of the local disk; what that could not keep is counted in the report. All raise
    ValueError for a name that no store takes, RuntimeError after `finish`, and RunLostError where
    another process has taken the run over; then nothing more is kept or sent.
    """

    @property
    def run_id(self) -> str:
        """The store's id of the run."""
        ...

    @property
    def experiment_id(self) -> str:
        """The store's id of the run's experiment."""
        ...

    @property
    def tracking_uri(self) -> str:
        """The store's address, without a password."""
        ...

    def log_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep numbers measured at environment step `step`.

        Values that are not finite are kept as NaN. The UI draws 2,500 points of a key: callers
        log on a grid that stays below that.
        """
        ...

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags; values are cut at 8,000 characters."""
        ...

    def set_note(self, markdown: str) -> None:
        """Set the text shown on top of the run, cut at 8,000 characters."""
        ...

    def log_text(self, text: str, name: str) -> bool:
        """Keep `text` as the artifact `name`, a relative path; whether the disk took it."""
        ...

    def log_file(self, path: Path, folder: str = "") -> bool:
        """Keep a copy of the file at `path` as the artifact `folder`/its name.

        Whether the disk took it. Raises OSError where the file can't be read.
        """
        ...

    def grow(self, name: str, text: str, *, place: int) -> bool:
        """Write `text` into the file `name`, which becomes an artifact when the run ends.

        At byte `place`, with nothing left behind it; at the end where the file is shorter. Whether
        the disk took it: it is not waited for, but the death of this process leaves it whole.
        """
        ...

    def sync(self) -> None:
        """Wait until what `grow` was given is on the disk, as far as that works."""
        ...

    def check_owner(self, *, anew: bool = True) -> None:
        """Raise RunLostError where another process has taken the run over.

        With `anew` the owner file is read, else the last known state counts, which costs nothing.
        """
        ...

    def finish(self, status: RunStatus, *, wait_seconds: float = 20.0) -> FinishReport:
        """End the run and wait at most `wait_seconds` until all has arrived.

        A second call does not change the status; it reports again.
        """
        ...
