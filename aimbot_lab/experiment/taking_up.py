"""Putting a training where a run's newest checkpoint was."""

from contextlib import suppress
from typing import NamedTuple

from aimbot_lab.experiment.checkpoints import CheckpointFolder
from aimbot_lab.experiment.request import RunRequest
from aimbot_lab.experiment.run_record import RESOLVED_NAME, configuration_hash
from aimbot_lab.experiment.unfinished import UnfinishedRun
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.reopening import claim_run
from aimbot_lab.tracking.run_folder import RunFolder
from aimbot_lab.tracking.trouble import Tell
from aimbot_lab.training.training import Training
from aimbot_lab.training.versions import versions


class TakenUp(NamedTuple):
    """From where a run goes on."""

    step: int  # environment steps; 0: it begins anew, for want of a checkpoint
    folder: CheckpointFolder


def claim(request: RunRequest, run_id: str) -> RunFolder:
    """The folder of the run that is resumed, which this process owns from now on.

    Raises ConfigurationError where another process has it, StoreError where the disk refuses.
    """
    data_folder, setting = request.data_folder, request.curriculum.config.tracking.uri
    address = choose_address(data_folder, explicit=request.tracking_uri, setting=setting)
    uri = None if address.embedded else address.uri
    return claim_run(data_folder, run_id, take_over=request.take_over, tracking_uri=uri)


def take_up(run: UnfinishedRun, training: Training, *, tell: Tell) -> TakenUp:
    """Have `training`, made from the run's curriculum, go on where `run` was.

    `tell` hears of a damaged checkpoint, and of libraries that are not those of the beginning.
    Raises LabError where the checkpoint is of another kind of training.
    """
    path, configuration = run.folder.checkpoints, None
    with suppress(OSError):
        configuration = configuration_hash(path)
    folder = CheckpointFolder(
        path, configuration=configuration, check_owner=run.folder.check_owner, tell=tell
    )
    newest = folder.newest()
    if newest is None:
        return TakenUp(0, folder)
    if newest.configuration is None:
        tell(
            f"{path / RESOLVED_NAME}: is taken as it is: the checkpoint at step {newest.step:,} is "
            "of an older version, which kept no hash of it"
        )
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
