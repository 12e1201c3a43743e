"""Putting a training where a run's newest checkpoint was."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from aimbot_lab.experiment.runs.checkpoints import CheckpointFolder, KeptCheckpoint
from aimbot_lab.experiment.runs.crew import Crew
from aimbot_lab.experiment.runs.request import RunRequest
from aimbot_lab.experiment.runs.resumable_runs import ResumableRun
from aimbot_lab.experiment.runs.run_record import (
    RESOLVED_NAME,
    RunRecord,
    configuration_hash,
    note_spent_steps,
)
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.journal.outage import Notify, silent
from aimbot_lab.tracking.runs.reopening import check_reopening, claim_run, reopen_run
from aimbot_lab.tracking.tracker import Tracker
from aimbot_lab.training.observer import Observer
from aimbot_lab.training.training import Training
from aimbot_lab.training.versions import CODE, versions
from aimbot_lab.worlds.registry import content_fault, content_of

NEW_EPISODES = (
    "its environments can't be restored in the middle of an episode: new episodes begin, and the "
    "run differs from one that was not interrupted"
)


class RestoredRun(NamedTuple):
    """From where a run goes on."""

    step: int  # environment steps; 0: it starts again, without a checkpoint
    folder: CheckpointFolder


def resume_run(
    request: RunRequest,
    run: ResumableRun,
    training: Training,
    *,
    crew: Crew,
    observer: Observer,
    notify: Notify,
) -> tuple[RestoredRun, Tracker]:
    """Have `training` go on where `run` was, which this process owns from now on.

    Where another process may still train it, all that can fail is tried before it is taken from
    it; what fails after that gives it back, so that a living trainer goes on.
    Raises ConfigurationError where another process has it, StoreError where the store or the disk
    refuses, LabError where the checkpoint is of another kind of training.
    """
    data_folder, setting = request.data_folder, request.curriculum.config.tracking.uri
    address = choose_address(data_folder, explicit=request.tracking_uri, setting=setting)
    uri = None if address.embedded else address.uri
    check_reopening(data_folder, run.run_id, tracking_uri=uri)
    if not run.folder.is_free:
        restore(run, training, crew=crew, notify=silent)
    claimed = claim_run(data_folder, run.run_id, take_over=request.take_over, tracking_uri=uri)
    try:
        restored = restore(replace(run, folder=claimed), training, crew=crew, notify=notify)
        observer.stage(f"resuming run {run.run_id} from step {restored.step:,}")
        if restored.step and not training.env.world.spec.can("snapshot"):
            notify(NEW_EPISODES)
        tracker = reopen_run(data_folder, run.run_id, claimed=claimed, on_outage=notify)
    except BaseException:
        if claimed.give_back():
            notify(
                f"run {run.run_id} was given back; where a process trains it unaware, it goes on"
            )
        raise
    with suppress(OSError):  # then whoever finds it dead ends it as FAILED, as it was
        note_spent_steps(run.folder.checkpoints, None)
    return restored, tracker


def restore(run: ResumableRun, training: Training, *, crew: Crew, notify: Notify) -> RestoredRun:
    """Have `training`, made from the run's curriculum, go on where `run` was, in all processes.

    `notify` is called for a damaged checkpoint, and for libraries that changed since the start.
    Raises LabError where the checkpoint is of another kind of training, ConfigurationError where it
    was trained on another map than there is now.
    """
    path, configuration = run.folder.checkpoints, None
    with suppress(OSError):
        configuration = configuration_hash(path)
    env = training.plan.env
    folder = CheckpointFolder(
        path,
        configuration=configuration,
        content=content_of(env),
        check_owner=run.folder.check_owner,
        notify=notify,
    )
    newest = folder.newest()
    if newest is None:
        return RestoredRun(0, folder)
    if fault := content_fault(newest.content, env):
        raise ConfigurationError(f"{newest.path}: {fault}")
    if newest.configuration is None:
        notify(
            f"{path / RESOLVED_NAME}: is taken as it is: the checkpoint at step {newest.step:,} is "
            "of an older version, which kept no hash of it"
        )
    try:
        crew.resume(training, newest)
    except LabError as error:
        raise LabError(f"run {run.run_id}: {error}") from error
    for line in _differences(run.record, newest, training):
        notify(line)
    return RestoredRun(newest.step, folder)


def _differences(record: RunRecord, newest: KeptCheckpoint, training: Training) -> Iterator[str]:
    """What makes the run, gone on with from `newest`, another than an unbroken one."""
    now, then = versions(), {**record.versions}
    if newest.code is not None:
        then[CODE] = newest.code
    changed = [
        f"{name} {then[name]} is now {now[name]}"
        for name in now
        if now[name] != then.get(name, now[name])  # older versions said less
    ]
    if changed:
        yield f"the result may differ from an unbroken run's: {', '.join(changed)}"
    if (end := record.spent_steps or 0) > newest.step:
        yield (
            f"the run ended at step {end:,}, and its last checkpoint is of step {newest.step:,}: "
            "the steps between are trained anew, and its metrics have both"
        )
    jumps = [f"{key} from {a:.4g} to {b:.4g}" for key, (a, b) in training.schedule_jumps.items()]
    if jumps:
        yield f"train.total_steps changed: at step {newest.step:,} {', '.join(jumps)}"
