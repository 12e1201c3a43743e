"""Runs whose process is gone, or lives, without a training."""

from dataclasses import replace
from typing import Any

from aimbot_lab.experiment.config.document import LoadedCurriculum
from aimbot_lab.experiment.runs.run_record import (
    CheckpointFolder,
    ResumableRun,
    RunRecord,
    configuration_hash,
    resumable_runs,
    write_record,
)
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import this_process, write_owner
from aimbot_lab.training.run_hooks import Checkpoint

CURRICULUM = """
name: small
env: {num_envs: 8}
lessons:
  - {name: one, targets: {goto: 1}, completion_criteria: {threshold: 0.5}}
  - {name: two, targets: {goto: 1, free: 2}}
train: {total_steps: 1000, n_steps: 2, batch_size: 4}
"""


def begun(
    data_folder: DataFolder, run_id: str, curriculum: LoadedCurriculum, **record: Any
) -> ResumableRun:
    """A run whose process is gone."""
    path = data_folder.run_folder(run_id)
    path.mkdir()
    write_owner(path / "owner.json", replace(this_process("token", None), pid=None))
    given = {
        "name": "its name",
        "curriculum": curriculum.name,
        "file": str(curriculum.path.absolute()),
        "begun_ms": 0,
    }
    write_record(path / "checkpoints", RunRecord(**{**given, **record}), curriculum)
    (run,) = (run for run in resumable_runs(data_folder) if run.run_id == run_id)
    return run


def set_alive(run: ResumableRun) -> None:
    write_owner(run.folder.path / "owner.json", this_process("token", None))


def ids(runs: list[ResumableRun]) -> list[str]:
    return [run.run_id for run in runs]


def kept_checkpoint(run: ResumableRun, *, with_hash: bool = True) -> None:
    path = run.folder.checkpoints
    configuration = configuration_hash(path) if with_hash else None
    CheckpointFolder(path, configuration=configuration).keep(Checkpoint(500, b"state"))
