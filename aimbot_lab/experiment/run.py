"""One run of a curriculum: assembled, trained, tracked, and told."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from aimbot_lab.experiment.description import describe_run, outcome_tags
from aimbot_lab.experiment.document import LoadedCurriculum
from aimbot_lab.experiment.note import note
from aimbot_lab.experiment.result import RunResult
from aimbot_lab.foundation.errors import AbortedError, StoreError
from aimbot_lab.tracking.address import without_password
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.mailbox import Mailbox
from aimbot_lab.tracking.opening import open_run
from aimbot_lab.tracking.reaper import reap_dead_runs
from aimbot_lab.tracking.tracker import RunStatus, Tracker
from aimbot_lab.tracking.trouble import Tell, silent
from aimbot_lab.training.links import RunLinks
from aimbot_lab.training.observer import Observer
from aimbot_lab.training.training import Training, TrainingOutcome, TrainingPlan

AGENT_FOLDER = "agent"
ABORT_SECONDS = 3.0  # what an abort waits for the store; the rest is delivered later


@dataclass(frozen=True)
class RunRequest:
    """What to run, and where it is tracked."""

    curriculum: LoadedCurriculum
    data_folder: DataFolder
    name: str | None = None  # of the run; by default the curriculum's
    tracking_uri: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)  # of the run, beside its own


def run_curriculum(
    request: RunRequest,
    observer: Observer,
    *,
    should_stop: Callable[[], bool],
    on_trouble: Tell = silent,
    after_training: Callable[[Training, Tracker], None] | None = None,
) -> RunResult:
    """Train as the curriculum says and track it.

    `after_training` is called with what was trained, unless it was stopped, while the run is open.

    Returns also where the steps were spent before the last lesson passed (status FAILED) and
    where `should_stop` ended it (status KILLED). A store or a disk that fails on the way ends
    nothing: `on_trouble` hears of it, and the result says what is missing.
    Raises StoreError before anything is created where the store can't be used, or where the agent
    could be saved nowhere, and AbortedError for a KeyboardInterrupt once there is a run.
    """
    config = request.curriculum.config
    observer.stage("preparing the simulator (compiled once, then kept)")
    training = Training(
        TrainingPlan(config.seed, config.env, config.lessons, config.train, config.forgetting)
    )
    observer.stage("opening the tracking store (made once, then kept)")
    curriculum = _without_passwords(request.curriculum)
    tracker = _open(request, curriculum, on_trouble=on_trouble)
    agent = "was not saved"
    try:
        links = _begin(request, tracker, curriculum)
        observer.stage("training")
        ended = training.learn(tracker, observer, should_stop, links=links)
        if after_training is not None and not ended.stopped:
            after_training(training, tracker)
        observer.stage("saving")
        rescued = log_agents(training, tracker, data_folder=request.data_folder)
        agent = f"is saved in {rescued}" if rescued else "is saved"
        return _conclude(request, training, tracker, ended=ended, rescued=rescued)
    except KeyboardInterrupt as abort:
        raise AbortedError(f"aborted: {_close(tracker)}, its agent {agent}") from abort
    except BaseException:
        tracker.finish("FAILED")
        raise


def _without_passwords(curriculum: LoadedCurriculum) -> LoadedCurriculum:
    """The curriculum with texts that everyone who sees the run may read."""
    return LoadedCurriculum(
        config=curriculum.config,
        source_text=without_password(curriculum.source_text),
        resolved_text=without_password(curriculum.resolved_text),
        path=curriculum.path,
    )


def _open(request: RunRequest, curriculum: LoadedCurriculum, *, on_trouble: Tell) -> Tracker:
    reap_dead_runs(request.data_folder)
    return open_run(
        request.data_folder,
        request.curriculum.config.tracking,
        describe_run(curriculum, request.name, request.tags),
        tracking_uri=request.tracking_uri,
        on_trouble=on_trouble,
    )


def _begin(request: RunRequest, tracker: Tracker, curriculum: LoadedCurriculum) -> RunLinks:
    """Log what is trained; what ties the training to its run."""
    tracker.log_text(curriculum.source_text, "curriculum.yaml")
    tracker.log_text(curriculum.resolved_text, "resolved.yaml")
    mailbox = Mailbox(request.data_folder.run_folder(tracker.run_id))
    return RunLinks(record=tracker, requests=mailbox)


def _close(tracker: Tracker) -> str:
    """What became of an aborted run."""
    run = f"run {tracker.run_id}"
    try:
        report = tracker.finish("KILLED", wait_seconds=ABORT_SECONDS)
    except KeyboardInterrupt:
        return f"{run} is closed by the next `aimbot-lab runs`"
    if report.waiting:
        return f"{run} is closed as {report.status} by the next `aimbot-lab runs`"
    return f"{run} is closed as {report.status}"


def _conclude(
    request: RunRequest,
    training: Training,
    tracker: Tracker,
    *,
    ended: TrainingOutcome,
    rescued: Path | None,
) -> RunResult:
    result = _result(request, training, tracker, ended)
    tracker.set_note(note(result))
    tracker.set_tags({**outcome_tags(result), "lab.state_sha256": ended.state_sha256})
    report = tracker.finish(result.status)
    return replace(
        result,
        entries_waiting=report.waiting,
        entries_dropped=report.dropped,
        agent_folder=str(rescued) if rescued else None,
    )


def log_agents(training: Training, tracker: Tracker, *, data_folder: DataFolder) -> Path | None:
    """Keep the last and the best agent as artifacts `agent/last` and `agent/best`.

    Where the disk has no room for that: the folder in which they lie instead, else None.
    Raises StoreError where they can be saved nowhere.
    """
    for staging in (None, data_folder.root):  # None: where temporary files go
        with suppress(OSError), tempfile.TemporaryDirectory("-agent", dir=staging) as folder:
            files = _saved(training, Path(folder))
            kept = [tracker.log_file(path, f"{AGENT_FOLDER}/{which}") for which, path in files]
            if kept and all(kept):
                return None
    for place in (os.getcwd, tempfile.gettempdir):
        with suppress(OSError):
            rescued = Path(place()) / f"aimbot-lab-agent-{tracker.run_id}"
            if _saved(training, rescued):
                return rescued
    raise StoreError(f"the agent of run {tracker.run_id} is lost: no folder had room for it")


def _saved(training: Training, folder: Path) -> list[tuple[str, Path]]:
    """The files of the agents in `folder`, each with the agent's name; none where it is full."""
    try:
        saved = training.save_agents(folder)
    except Exception:  # noqa: BLE001 safetensors has an error of its own for a full disk
        shutil.rmtree(folder, ignore_errors=True)
        return []
    return [(which, path) for which, paths in saved.items() for path in paths]


def _result(
    request: RunRequest, training: Training, tracker: Tracker, ended: TrainingOutcome
) -> RunResult:
    progress = training.progress
    return RunResult(
        run_id=tracker.run_id,
        name=request.name or request.curriculum.name,
        status=_status(ended, goal_reached=progress.goal_reached),
        tracking_uri=tracker.tracking_uri,
        experiment_id=tracker.experiment_id,
        seed=request.curriculum.config.seed,
        steps=ended.steps,
        seconds=ended.seconds,
        steps_per_second=ended.steps / max(ended.seconds, 1e-9),
        state_sha256=ended.state_sha256,
        lessons=progress.lesson_reports,
        cells=progress.cell_reports,
        held_back_by=progress.held_back_by(),
        falls=tuple(progress.falls),
        entries_waiting=0,
    )


def _status(ended: TrainingOutcome, *, goal_reached: bool) -> RunStatus:
    if ended.stopped:
        return "KILLED"
    return "FINISHED" if goal_reached else "FAILED"
