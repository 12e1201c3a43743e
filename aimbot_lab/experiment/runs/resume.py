"""Resuming a run: which one is meant, whether it may be, and its training put back."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from aimbot_lab.experiment.config.document import LoadedCurriculum, plain_settings
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.crew import Crew
from aimbot_lab.experiment.runs.result import CALLBACKS, harmless_settings
from aimbot_lab.experiment.runs.run_record import (
    RATE,
    RECORD_NAME,
    RESOLVED_NAME,
    CheckpointFolder,
    KeptCheckpoint,
    ResumableRun,
    RunRecord,
    RunRequest,
    configuration_hash,
    note_rate,
    note_spent_steps,
    resumable_runs,
)
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.world import new_notices
from aimbot_lab.tracking.data_folder import DataFolder, choose_address, without_password
from aimbot_lab.tracking.history import find_run
from aimbot_lab.tracking.journal import stored_ending
from aimbot_lab.tracking.journal_tracker import check_reopening, claim_run, reopen_run
from aimbot_lab.tracking.run_folder import CHECKPOINTS_NAME, refuse_unless_free
from aimbot_lab.tracking.tracker import Notify, RunSummary, Tracker, silent
from aimbot_lab.training.checkpoint import CODE, versions
from aimbot_lab.training.run_hooks import Observer
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import content_fault, content_of

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.run_record import InitialAgent


BUDGET = "train.total_steps"
DEVICE = "train.device"  # another one rounds otherwise, but one may not be there any more
_MISSING = "nothing"


class Change(NamedTuple):
    """A key whose value is not what the run was begun with."""

    key: str
    before: str
    after: str

    def __str__(self) -> str:
        return one_line(without_password(f"{self.key}: was {self.before}, is {self.after}"))


def check_resume(
    run: ResumableRun,
    curriculum: LoadedCurriculum,
    data_folder: DataFolder,
    *,
    take_over: bool = False,
    tracking_uri: str | None = None,
) -> tuple[RunRequest, tuple[Change, ...]]:
    """`run`, to be resumed as `curriculum` says, and what that changes of its configuration.

    `take_over` has a process stop that may still train it, and `tracking_uri` names its store
    where the run's owner file, which names it, is damaged.
    Raises ConfigurationError where a process may still train it, where what it was begun with was
    altered, where `curriculum` differs in what can change the result, each key in a line, and
    where no steps are left.
    """
    if not take_over:
        refuse_unless_free(run.folder)
    _refuse_if_altered(run)
    changes = configuration_changes(run.curriculum().config, curriculum.config)
    if refused := _refused(changes, curriculum.config):
        raise ConfigurationError(
            f"run {run.run_id} can't be resumed with another configuration than its own:",
            *(f"  {change}" for change in refused),
        )
    _refuse_if_spent(run, curriculum, changes)
    request = RunRequest(
        curriculum, data_folder, tracking_uri=tracking_uri, resume=run, take_over=take_over
    )
    return request, changes


def _refuse_if_spent(
    run: ResumableRun, curriculum: LoadedCurriculum, changes: tuple[Change, ...]
) -> None:
    """Raise ConfigurationError where `curriculum` leaves the run no steps to take."""
    total = curriculum.config.train.total_steps
    taken = run.record.spent_steps or CheckpointFolder(run.folder.checkpoints).newest_step or 0
    if taken > total and any(change.key == BUDGET for change in changes):
        raise ConfigurationError(
            f"run {run.run_id} has taken {taken:,} steps already, more than {BUDGET} = {total:,}; "
            f"give it more than it has taken, for example --set {BUDGET}={2 * taken}"
        )
    # One that died after its last checkpoint, before it noted its end, only ends.
    if taken >= total and run.record.spent_steps is not None:
        raise ConfigurationError(
            f"run {run.run_id} has used up its {taken:,} steps; "
            f"give it more, for example --set {BUDGET}={2 * taken}"
        )


def _refuse_if_altered(run: ResumableRun) -> None:
    """Raise ConfigurationError where the kept configuration is not that of the checkpoints."""
    folder = CheckpointFolder(run.folder.checkpoints)
    path = folder.path / RESOLVED_NAME
    try:
        found = configuration_hash(folder.path)
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror}") from error
    if folder.has_configuration(found):
        return
    newest = folder.newest()
    begun_with = run.record.configuration if newest is None else newest.configuration
    if begun_with not in (found, None):
        raise ConfigurationError(
            f"{path}: was altered since run {run.run_id} was begun with it; put it back as it was "
            "to resume the run, or begin a new one with aimbot-lab run"
        )


def _refused(changes: Sequence[Change], config: CurriculumFile) -> list[Change]:
    """Those of `changes`, which led to `config`, that are neither harmless nor resumed for."""
    allowed = harmless_settings(config.train) | {BUDGET, RATE, DEVICE}
    others = CALLBACKS, f"{RATE}."
    return [one for one in changes if one.key not in allowed and not one.key.startswith(others)]


def find_resumable(
    run: str, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> ResumableRun:
    """The one run that begins with `run`, or the "latest", where it can be resumed.

    Raises ConfigurationError otherwise, saying why.
    """
    found = [one for one in resumable_runs(data_folder) if run and one.run_id.startswith(run)]
    exact = [one for one in found if one.run_id == run]
    if len(exact or found) == 1:
        return (exact or found)[0]
    meant = find_run(data_folder, run, tracking_uri=tracking_uri)
    here = [one for one in resumable_runs(data_folder) if one.run_id == meant.run_id]
    if not here:
        raise ConfigurationError(_not_resumable(meant, data_folder))
    return here[0]


def newest_resumable(
    curriculum: LoadedCurriculum, data_folder: DataFolder, *, start: "InitialAgent | None" = None
) -> ResumableRun | None:
    """The run of the same file or curriculum and seed that was begun last; None without any.

    One that began with another agent than `start` is another run.

    One with the same configuration comes before all others, one with steps left before the rest.
    """
    file, config = str(curriculum.path.absolute()), curriculum.config
    began_with = None if start is None else start.ref.sha256
    suiting = [
        (_match(run, config), run)
        for run in resumable_runs(data_folder)
        if file == run.record.file or config.name == run.record.curriculum
        if (run.record.start and run.record.start.sha256) == began_with
    ]
    found = [(suits, run) for suits, run in suiting if suits is not None]
    best = max(found, key=lambda pair: pair[0], default=None)  # the first of equals
    return None if best is None else best[1]


def _match(run: ResumableRun, config: CurriculumFile) -> tuple[bool, bool] | None:
    """Whether it has the configuration, and steps left; None where it is another run."""
    try:
        begun_with = run.curriculum().config
    except ConfigurationError:
        return None  # begun by a version that took other files
    if begun_with.seed != config.seed:
        return None
    changes = configuration_changes(begun_with, config)
    has_steps = (run.record.spent_steps or 0) < config.train.total_steps
    if not has_steps and stored_ending(run.folder.path) == "FINISHED":
        return None  # it is over, as one that passed its last lesson
    return not _refused(changes, config), has_steps


def configuration_changes(before: CurriculumFile, after: CurriculumFile) -> tuple[Change, ...]:
    """The keys with different values, in order of the file."""
    old, new = (dict(_flat("", plain_settings(one))) for one in (before, after))
    return tuple(
        Change(key, str(old.get(key, _MISSING)), str(new.get(key, _MISSING)))
        for key in {**old, **new}
        if old.get(key, _MISSING) != new.get(key, _MISSING)
    )


def _flat(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every value below `value`, under its dotted key."""
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        pairs = enumerate(value)
    if not pairs:
        yield key, list(value) if isinstance(value, tuple) else value
    for name, inner in pairs:
        yield from _flat(f"{key}.{name}" if key else str(name), inner)


def _not_resumable(run: RunSummary, data_folder: DataFolder) -> str:
    """Why a run of the store can't be resumed here."""
    if run.status == "FINISHED":
        return f"run {run.run_id} is finished: there is nothing left to do"
    record = data_folder.run_folder(run.run_id) / CHECKPOINTS_NAME / RECORD_NAME
    if record.exists():
        return f"{record}: is damaged, or of another version; run {run.run_id} needs it to resume"
    return (
        f"run {run.run_id} has no checkpoint in {data_folder.runs}: it was trained elsewhere, "
        "ended before its training began, or its folder was deleted"
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
    played = "" if training.env.world.spec.can("snapshot") else ": what ran is played again"
    observer.stage(f"restoring run {run.run_id}{played}")
    if not run.folder.is_free:
        restore(run, training, crew=crew, notify=silent)
    claimed = claim_run(data_folder, run.run_id, take_over=request.take_over, tracking_uri=uri)
    try:
        restored = restore(replace(run, folder=claimed), training, crew=crew, notify=notify)
        observer.stage(f"resuming run {run.run_id} from step {restored.step:,}")
        tracker = reopen_run(data_folder, run.run_id, claimed=claimed, on_outage=notify)
    except BaseException:
        if claimed.give_back():
            notify(f"run {run.run_id} was given back; a process that still trains it continues")
        raise
    with suppress(OSError):  # then the command that finds it dead ends it as FAILED, as it was
        note_spent_steps(run.folder.checkpoints, None)
    before, now = (
        plain_settings(one.config)["train"]["learning_rate"]
        for one in (run.curriculum(), request.curriculum)
    )
    if before != now:
        note_rate(run.folder.checkpoints, restored.step, now)
        tracker.set_tags({f"lab.learning_rate.{restored.step}": json.dumps(now)})
    return restored, tracker


def restore(run: ResumableRun, training: Training, *, crew: Crew, notify: Notify) -> RestoredRun:
    """Have `training`, made from the run's curriculum, go on where `run` was, in all processes.

    `notify` is called for a damaged checkpoint, for libraries that changed since the start, and
    where new episodes begin.
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
            f"{path / RESOLVED_NAME}: is used unchecked: the checkpoint at step {newest.step:,} is "
            "of an older version, which kept no hash of it"
        )
    try:
        crew.resume(training, newest)
    except LabError as error:
        raise LabError(f"run {run.run_id}: {error}") from error
    for line in (*_differences(run.record, newest, training), *new_notices(training.env.world)):
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
            "the steps in between are trained again, and metrics have both"
        )
    jumps = [f"{key} from {a:.4g} to {b:.4g}" for key, (a, b) in training.schedule_jumps.items()]
    if jumps:
        yield f"train.total_steps changed: at step {newest.step:,} {', '.join(jumps)}"
