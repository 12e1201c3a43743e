"""A tracker that keeps everything in memory, for tests of what logs to it."""

from collections.abc import Mapping
from pathlib import Path

from aimbot_lab.tracking.limits import (
    checked_file_name,
    checked_metrics,
    checked_name,
    checked_tags,
    name_in_folder,
)
from aimbot_lab.tracking.tracker import NOTE_TAG, FinishReport, RunStatus


class MemoryTracker:
    """A `Tracker` whose `metrics`, `tags`, `artifacts` and `status` can be read at any time."""

    run_id = "memory"
    experiment_id = "memory"
    tracking_uri = "memory:"

    def __init__(self) -> None:
        self.metrics: dict[str, list[tuple[int, float]]] = {}  # key -> (step, value), as logged
        self.tags: dict[str, str] = {}
        self.artifacts: dict[str, bytes] = {}  # name -> content
        self.status: RunStatus | None = None

    def log_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep numbers measured at environment step `step`."""
        self._check_open()
        for key, value in checked_metrics(metrics).items():
            self.metrics.setdefault(key, []).append((int(step), value))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags."""
        self._check_open()
        self.tags.update(checked_tags(tags))

    def set_note(self, markdown: str) -> None:
        """Set the text shown on top of the run."""
        self.set_tags({NOTE_TAG: markdown})

    def log_text(self, text: str, name: str) -> bool:
        """Keep `text` as the artifact `name`; it always can."""
        self._check_open()
        self.artifacts[checked_name(name)] = text.encode()
        return True

    def log_file(self, path: Path, folder: str = "") -> bool:
        """Keep a copy of the file at `path` as an artifact; it always can."""
        self._check_open()
        name = name_in_folder(folder, path.name)
        self.artifacts[name] = path.read_bytes()
        return True

    def grow(self, name: str, text: str, *, place: int) -> bool:
        """Write `text` into the artifact `name`; it always can."""
        self._check_open()
        before = self.artifacts.get(checked_file_name(name), b"")
        self.artifacts[name] = before[:place] + text.encode()
        return True

    def sync(self) -> None:
        """There is nothing to wait for."""

    def check_owner(self, *, anew: bool = True) -> None:
        """Nobody else can have it."""

    def finish(self, status: RunStatus, *, wait_seconds: float = 20.0) -> FinishReport:  # noqa: ARG002
        """End the run; there is nothing to wait for."""
        self.status = self.status or status
        return FinishReport(self.status)

    def _check_open(self) -> None:
        if self.status is not None:
            raise RuntimeError("the run has ended: nothing more can be logged to it")
