"""Putting a training where a run's newest checkpoint was."""

from typing import NamedTuple

from aimbot_lab.experiment.checkpoints import CheckpointFolder
from aimbot_lab.experiment.unfinished import UnfinishedRun
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.tracking.trouble import Tell
from aimbot_lab.training.training import Training
from aimbot_lab.training.versions import versions


class TakenUp(NamedTuple):
    """From where a run goes on."""

    step: int  # environment steps; 0: it begins anew, for want of a checkpoint
    folder: CheckpointFolder


def take_up(run: UnfinishedRun, training: Training, *, tell: Tell) -> TakenUp:
    """Have `training`, made from the run's curriculum, go on where `run` was.

    `tell` hears of a damaged checkpoint, and of libraries that are not those of the beginning.
    Raises LabError where the checkpoint is of another kind of training.
    """
    folder = CheckpointFolder(run.folder.checkpoints, tell=tell)
    newest = folder.newest()
    if newest is None:
        return TakenUp(0, folder)
    now, then = versions(), run.record.versions
    changed = [
        f"{name} {then.get(name)} is now {now[name]}" for name in now if now[name] != then.get(name)
    ]
    if changed:
        tell(f"the result may differ from an unbroken run's: {', '.join(changed)}")
    try:
        training.resume(newest.state, newest.read_part)
    except LabError as error:
        raise LabError(f"run {run.run_id}: {error}") from error
    return TakenUp(newest.step, folder)
