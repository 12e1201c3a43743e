"""What a worker of a sweep works with, and who watches it."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.tracking.data_folder import DataFolder

Stage = Literal["search", "confirm"]


class Progress(NamedTuple):
    """Where a trial stands, for those who watch."""

    stage: Stage
    number: int
    share: float  # of its trainings' steps


class WorkerMonitor(Protocol):
    """Someone who watches a worker, and may stop it."""

    def should_stop(self) -> bool:
        """Whether it is to leave its trial for later."""
        ...

    def progress(self, progress: Progress) -> None:
        """Where its trial stands."""
        ...


@dataclass(frozen=True)
class WorkerContext:
    """What a worker works with."""

    record: SweepRecord
    data_folder: DataFolder
    tracking_uri: str | None
    monitor: WorkerMonitor
