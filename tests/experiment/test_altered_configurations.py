"""A configuration or checkpoint that changed since the run began."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from begun_runs import begun, kept_checkpoint

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.crew import Crew
from aimbot_lab.experiment.runs.resume import (
    check_resume,
    restore,
)
from aimbot_lab.experiment.runs.run_record import (
    configuration_hash,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.training.checkpoint.state import versions
from aimbot_lab.training.run_hooks import Checkpoint
from aimbot_lab.worlds.registry import settings_with


class FakeTraining:
    """Takes any checkpoint."""

    plan = SimpleNamespace(env=settings_with())
    schedule_jumps: dict[str, tuple[float, float]] = {}  # noqa: RUF012

    def resume(self, state: bytes, read_part: Any) -> None:
        assert state == b"state"


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("written", "altered"),
    [("learning_rate: 0.001", "learning_rate: 0.002"), ("threshold: 0.5", "threshold: 0.4")],
)
def test_an_altered_configuration_is_refused_by_the_name_of_its_file(
    data_folder: DataFolder, file: Path, checkpoint: bool, written: str, altered: str
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    if checkpoint:
        kept_checkpoint(run)
    resolved = run.folder.checkpoints / "resolved.yaml"
    whole = resolved.read_text()
    assert written in whole
    resolved.write_text(whole.replace(written, altered))
    with pytest.raises(ConfigurationError) as refused:
        check_resume(run, run.curriculum(), data_folder)
    (line,) = refused.value.faults
    assert line.startswith(f"{resolved}: was altered since run a1 was begun with it")
    resolved.write_text(whole)
    assert check_resume(run, run.curriculum(), data_folder)[0].resume == run


def test_a_configuration_that_is_gone_is_named(data_folder: DataFolder, file: Path) -> None:
    run = begun(data_folder, "a1", load_curriculum(file))
    curriculum = run.curriculum()
    (run.folder.checkpoints / "resolved.yaml").unlink()
    with pytest.raises(ConfigurationError, match=r"resolved.yaml: can't be read"):
        check_resume(run, curriculum, data_folder)


@pytest.mark.parametrize("with_hash", [False, True])
def test_a_checkpoint_of_an_older_version_is_resumed_with_a_line(
    data_folder: DataFolder, file: Path, with_hash: bool
) -> None:
    run = begun(data_folder, "a1", load_curriculum(file), versions=versions())
    kept_checkpoint(run, with_hash=with_hash)
    check_resume(run, run.curriculum(), data_folder)
    told: list[str] = []
    taken_up = restore(run, FakeTraining(), crew=Crew(), notify=told.append)  # type: ignore[arg-type]
    assert taken_up.step == 500
    assert [line.count("resolved.yaml: is taken as it is") for line in told] == [1] * (
        not with_hash
    )
    taken_up.folder.keep(Checkpoint(600, b"state"))
    assert taken_up.folder.has_configuration(configuration_hash(run.folder.checkpoints))
