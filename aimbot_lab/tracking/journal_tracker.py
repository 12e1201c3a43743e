"""The tracker that trainings use: everything goes to a journal, and from there to the store."""

import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aimbot_lab.tracking.entries import EndEntry, Entry, FileEntry, MetricsEntry, TagsEntry
from aimbot_lab.tracking.journal import Journal
from aimbot_lab.tracking.limits import checked_metrics, checked_name, checked_tags, name_in_folder
from aimbot_lab.tracking.run_folder import RunFolder
from aimbot_lab.tracking.sender import Sender
from aimbot_lab.tracking.tracker import NOTE_TAG, FinishReport, RunStatus


class RunAddress(NamedTuple):
    """Where a run is found."""

    run_id: str
    experiment_id: str
    tracking_uri: str


class JournalTracker:
    """A `Tracker` over a journal and the thread that empties it."""

    def __init__(
        self, address: RunAddress, folder: RunFolder, *, journal: Journal, sender: Sender
    ) -> None:
        self._address = address
        self._folder = folder
        self._journal = journal
        self._sender = sender
        self._report: FinishReport | None = None

    @property
    def run_id(self) -> str:
        """The store's id of the run."""
        return self._address.run_id

    @property
    def experiment_id(self) -> str:
        """The store's id of the run's experiment."""
        return self._address.experiment_id

    @property
    def tracking_uri(self) -> str:
        """The store's address; it may hold a password."""
        return self._address.tracking_uri

    def log_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep numbers measured at environment step `step`."""
        self._keep(MetricsEntry(int(step), now_ms(), checked_metrics(metrics)))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags."""
        self._keep(TagsEntry(checked_tags(tags)))

    def set_note(self, markdown: str) -> None:
        """Set the text shown on top of the run."""
        self.set_tags({NOTE_TAG: markdown})

    def log_text(self, text: str, name: str) -> None:
        """Keep `text` as the artifact `name`."""
        place = PurePosixPath(checked_name(name))
        self._journal.check_open()
        kept = self._journal.files.keep_text(text, place.name)
        self._keep(FileEntry(kept, _folder_name(place.parent)))

    def log_file(self, path: Path, folder: str = "") -> None:
        """Keep a copy of the file at `path` as an artifact."""
        place = PurePosixPath(name_in_folder(folder, path.name))
        self._journal.check_open()
        kept = self._journal.files.keep_file(path)
        self._keep(FileEntry(kept, _folder_name(place.parent)))

    def finish(self, status: RunStatus, *, wait_seconds: float = 20.0) -> FinishReport:
        """End the run, wait until all has arrived, and give the run folder back."""
        if self._report is None:
            if self._journal.ending is None:
                self._keep(EndEntry(status, now_ms()))
            delivered = self._sender.finish(wait_seconds)
            self._report = self._current_report(status)
            self._journal.close()
            if delivered:
                self._folder.remove()
            else:
                self._folder.release()
        return self._report

    def _current_report(self, status: RunStatus) -> FinishReport:
        ending = self._journal.ending
        return FinishReport(
            status=ending.status if ending else status,
            waiting=self._journal.waiting(),
            refused=self._sender.refused,
            trouble=self._sender.trouble,
        )

    def _keep(self, entry: Entry) -> None:
        self._journal.append(entry)
        self._sender.notify()


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _folder_name(folder: PurePosixPath) -> str:
    return "" if folder == PurePosixPath(".") else str(folder)
