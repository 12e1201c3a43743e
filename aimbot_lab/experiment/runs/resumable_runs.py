"""Runs of a data folder that can be resumed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.runs.run_record import RESOLVED_NAME, RunRecord, read_record
from aimbot_lab.experiment.runs.stored_curriculum import noted_in
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.run_folder import RunFolder, run_folders


@dataclass(frozen=True)
class ResumableRun:
    """A run that was not finished, and perhaps still runs."""

    run_id: str
    record: RunRecord
    folder: RunFolder
    data_folder: DataFolder

    @property
    def alive(self) -> bool:
        """Whether a process trains it, or may do so on another machine."""
        return not self.folder.is_free

    def curriculum(self, overrides: Sequence[str] = ()) -> LoadedCurriculum:
        """What it was begun with, with each `KEY=VALUE` of `overrides` put in.

        Raises ConfigurationError for an override that can't be.
        """
        path, may_run = self.folder.checkpoints / RESOLVED_NAME, noted_in(self.data_folder)
        return load_curriculum(path, overrides, may_run=may_run)


def resumable_runs(data_folder: DataFolder, *, key: str | None = None) -> list[ResumableRun]:
    """All of them, those begun last first; with `key`, those whose request had it."""
    found = [run for run in _all(data_folder) if key is None or run.record.key == key]
    return sorted(found, key=lambda run: run.record.begun_ms, reverse=True)


def _all(data_folder: DataFolder) -> Iterator[ResumableRun]:
    for folder in run_folders(data_folder):
        record = read_record(folder.checkpoints)
        if record is not None and folder.run_id is not None:
            yield ResumableRun(folder.run_id, record, folder, data_folder)
