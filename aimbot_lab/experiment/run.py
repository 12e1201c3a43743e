"""One run of a curriculum: assembled, trained, tracked, and told."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from aimbot_lab.experiment.description import describe_run
from aimbot_lab.experiment.document import LoadedCurriculum
from aimbot_lab.experiment.note import note
from aimbot_lab.experiment.result import RunResult, outcome
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.opening import open_run
from aimbot_lab.tracking.tracker import RunStatus, Tracker
from aimbot_lab.training.observer import Observer
from aimbot_lab.training.training import Training, TrainingOutcome, TrainingPlan

AGENT_FOLDER = "agent"


@dataclass(frozen=True)
class RunRequest:
    """What to run, and where it is tracked."""

    curriculum: LoadedCurriculum
    data_folder: DataFolder
    name: str | None = None  # of the run; by default the curriculum's
    tracking_uri: str | None = None


def run_curriculum(
    request: RunRequest, observer: Observer, *, should_stop: Callable[[], bool]
) -> RunResult:
    """Train as the curriculum says and track it.

    Returns also where the steps were spent before the last lesson passed (status FAILED) and
    where `should_stop` ended it (status KILLED); agents and tracking are complete either way.
    Raises StoreError before anything is created where the store can't be used.
    """
    config = request.curriculum.config
    observer.stage("preparing the simulator (compiled once, then kept)")
    training = Training(TrainingPlan(config.seed, config.env, config.lessons, config.train))
    observer.stage("opening the tracking store (made once, then kept)")
    description = describe_run(request.curriculum, request.name)
    tracker = open_run(
        request.data_folder, config.tracking, description, tracking_uri=request.tracking_uri
    )
    try:
        tracker.log_text(request.curriculum.source_text, "curriculum.yaml")
        tracker.log_text(request.curriculum.resolved_text, "resolved.yaml")
        observer.stage("training")
        ended = training.learn(tracker, observer, should_stop)
        observer.stage("saving")
        return _conclude(request, training, tracker, ended)
    except BaseException as error:
        tracker.finish("KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED")
        raise


def _conclude(
    request: RunRequest, training: Training, tracker: Tracker, ended: TrainingOutcome
) -> RunResult:
    log_agents(training, tracker)
    result = _result(request, training, tracker, ended)
    tracker.set_note(note(result))
    tracker.set_tags({"lab.outcome": outcome(result), "lab.state_sha256": ended.state_sha256})
    report = tracker.finish(result.status)
    return replace(result, entries_waiting=report.waiting)


def log_agents(training: Training, tracker: Tracker) -> None:
    """Keep the last and the best agent as artifacts `agent/last` and `agent/best`."""
    with tempfile.TemporaryDirectory(prefix="aimbot-lab-") as folder:
        for which, paths in training.save_agents(Path(folder)).items():
            for path in paths:
                tracker.log_file(path, f"{AGENT_FOLDER}/{which}")


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
        entries_waiting=0,
    )


def _status(ended: TrainingOutcome, *, goal_reached: bool) -> RunStatus:
    if ended.stopped:
        return "KILLED"
    return "FINISHED" if goal_reached else "FAILED"
