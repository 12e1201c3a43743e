"""One run of a curriculum: assembled, trained, tracked and reported."""

import hashlib
import json
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from aimbot_lab.experiment.runs.agents import AgentsOnRequest, log_agents, log_initial_agent
from aimbot_lab.experiment.runs.crew import Crew, Order, prepared, start_of
from aimbot_lab.experiment.runs.result import (
    RESULT_NAME,
    RunResult,
    describe_run,
    note,
    outcome_tags,
)
from aimbot_lab.experiment.runs.resume import RestoredRun, resume_run
from aimbot_lab.experiment.runs.run_record import (
    RESOLVED_NAME,
    SOURCE_NAME,
    SPEC_NAME,
    CheckpointFolder,
    RunRecord,
    RunRequest,
    close_orphan_runs,
    note_code,
    note_spent_steps,
    read_record,
    spec_text,
    write_record,
)
from aimbot_lab.foundation.errors import AbortedError, ForeignCodeError, LabError, RunLostError
from aimbot_lab.foundation.shown_text import speed
from aimbot_lab.foundation.world import closed_on_failure, new_notices
from aimbot_lab.tracking.control_channel import LOOK_SECONDS, ControlChannel, LiveFolder
from aimbot_lab.tracking.data_folder import without_password
from aimbot_lab.tracking.journal_tracker import open_run
from aimbot_lab.tracking.run_folder import CHECKPOINTS_NAME
from aimbot_lab.tracking.tracker import Notify, RunStatus, Tracker, silent
from aimbot_lab.training.callbacks.assembly import LivePublication
from aimbot_lab.training.checkpoint import versions
from aimbot_lab.training.processes.exchange import LostError
from aimbot_lab.training.run_hooks import Observer, RunLinks, TrainingOutcome
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import content_of

ABORT_SECONDS = 3.0  # what an abort waits for the store; the rest is delivered later

TRACEBACK_NAME = "traceback.txt"  # among a run's artifacts


def run_curriculum(
    request: RunRequest,
    observer: Observer,
    *,
    should_stop: Callable[[], bool],
    on_outage: Notify = silent,
    after_training: Callable[[Training, Tracker], None] | None = None,
    crew: Crew | None = None,
) -> RunResult:
    """Train as the curriculum says and track it.

    `after_training` is called with what was trained, unless it was stopped, while the run is open.
    Returns also where the steps were spent before the last lesson passed (status FAILED) and
    where `should_stop` ended it (status KILLED); such a run can be resumed. A store or a disk
    that fails on the way ends nothing: `on_outage` is called, and the result says what is missing.
    This process leads the others of `crew`.
    Raises StoreError before anything is created where the store can't be used, or where the agent
    could be saved nowhere, RunLostError where another process takes the run over, LostError where
    one of `crew` is gone, and AbortedError for a KeyboardInterrupt once there is a run.
    """
    crew = crew or Crew()
    training, restored, tracker = _opened(request, observer, crew, on_outage=on_outage)
    checkpoints = restored.folder if restored else _new_checkpoints(request, tracker, on_outage)
    agent = "was not saved"
    try:
        with crew.telling():
            links = _begin(request, tracker, restored, checkpoints)
        crew.order(Order(learn=True))
        observer.stage("training")
        ended = training.learn(tracker, observer, _while_owned(tracker, should_stop), links=links)
        if after_training is not None and not ended.stopped:
            after_training(training, tracker)
        observer.stage("saving")
        rescued = log_agents(training, tracker, data_folder=request.data_folder)
        agent = f"is saved in {rescued}" if rescued else "is saved"
        _close_worlds(training, agent)
        for line in new_notices(training.env.world):
            observer.notice(line)
        result = _result(request, training, tracker, ended)
        return _conclude(result, tracker, checkpoints, rescued=rescued)
    except KeyboardInterrupt as abort:
        what = f"aborted: {_close(tracker)}, its agent {agent}{_advice(tracker, checkpoints)}"
        raise AbortedError(what) from abort
    except BaseException as error:
        if _end_by(error, tracker) and request.key is None:  # others are found again by theirs
            observer.notice(f"run {tracker.run_id} failed{_advice(tracker, checkpoints)}")
        raise
    finally:
        with suppress(LabError):
            training.close()


def _close_worlds(training: Training, agent: str) -> None:
    """End the worlds of a training that is over; what they raise fails the run all the same."""
    try:
        training.close()
    except LabError as error:
        raise ForeignCodeError(f"{error}; the training was over, its agent {agent}") from error


def _end_by(error: BaseException, tracker: Tracker) -> bool:
    """End a run that can't go on here; whether it failed: one that lost a process was killed."""
    if isinstance(error, LostError):
        tracker.finish("KILLED", wait_seconds=ABORT_SECONDS)
        return False
    is_own = isinstance(error, Exception) and not isinstance(error, RunLostError)
    if is_own:
        text = "".join(traceback.format_exception(error))
        with suppress(RuntimeError, RunLostError, OSError):  # ended, taken over, no room
            tracker.log_text(without_password(text), TRACEBACK_NAME)
    tracker.finish("FAILED")
    return is_own


def _opened(
    request: RunRequest, observer: Observer, crew: Crew, *, on_outage: Notify
) -> tuple[Training, RestoredRun | None, Tracker]:
    """The training, put where the run that is resumed had come to, and the run's tracker."""
    with crew.telling():
        close_orphan_runs(request.data_folder)
        training = prepared(request, observer, crew.exchange, actors=crew.actors)
        with closed_on_failure(training.close):
            crew.order()
            note_code(request.data_folder, request.curriculum.config)
            observer.stage("opening the tracking store (made once, then kept)")
            if request.resume is not None:
                run = request.resume
                return training, *resume_run(
                    request, run, training, crew=crew, observer=observer, notify=on_outage
                )
            told = request.public_curriculum
            tracker = open_run(
                request.data_folder,
                request.curriculum.config.tracking,
                describe_run(told, request.name, request.tags, start=request.start_ref),
                tracking_uri=request.tracking_uri,
                on_outage=on_outage,
            )
            return training, None, tracker


def _while_owned(tracker: Tracker, should_stop: Callable[[], bool]) -> Callable[[], bool]:
    """`should_stop`, which raises RunLostError once another process has the run."""

    def asked() -> bool:
        tracker.check_owner(anew=False)
        return should_stop()

    return asked


def _new_checkpoints(request: RunRequest, tracker: Tracker, notify: Notify) -> CheckpointFolder:
    """The folder of a new run's checkpoints; a disk that refuses it is reported."""
    path = request.data_folder.run_folder(tracker.run_id) / CHECKPOINTS_NAME
    record = RunRecord(
        name=request.run_name,
        curriculum=request.curriculum.name,
        file=str(request.curriculum.path.absolute()),
        begun_ms=time.time_ns() // 1_000_000,
        key=request.key,
        versions=versions(),
    )

    def begin() -> None:
        write_record(path, record, request.curriculum, start=request.start)

    with suppress(OSError):  # the first checkpoint tries again, and reports
        begin()
    return CheckpointFolder(
        path,
        configuration=hashlib.sha256(request.curriculum.resolved_text.encode()).hexdigest(),
        content=content_of(request.curriculum.config.env),
        begin=begin,
        check_owner=tracker.check_owner,
        notify=notify,
    )


def _begin(
    request: RunRequest,
    tracker: Tracker,
    restored: RestoredRun | None,
    checkpoints: CheckpointFolder,
) -> RunLinks:
    """Log what is trained; what ties the training to its run."""
    curriculum = request.public_curriculum
    if restored is None or restored.step == 0:  # whose process may have died before it logged any
        source = curriculum.source_text
        with suppress(OSError):
            source = without_password((checkpoints.path / SOURCE_NAME).read_text("utf-8"))
        tracker.log_text(source, "curriculum.yaml")
        if (start := start_of(request)) is not None:
            log_initial_agent(start, tracker)
    if restored is not None:
        tracker.set_tags({"lab.resumed_at_step": str(restored.step)})
    kept = {RESOLVED_NAME: curriculum.resolved_text, **curriculum.files}
    if (spec := spec_text(curriculum.config.env)) is not None:
        kept[SPEC_NAME] = spec
    for name, text in kept.items():
        tracker.log_text(text, name)
    folder, config = request.data_folder.run_folder(tracker.run_id), curriculum.config
    return RunLinks(
        record=tracker,
        requests=ControlChannel(folder, look_seconds=LOOK_SECONDS),
        checkpoints=checkpoints,
        replays=tracker,
        live=LivePublication(LiveFolder.of(folder), env=config.env, train=config.train),
        agents=AgentsOnRequest(tracker, env=config.env, train=config.train),
    )


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


def _resumes_at(checkpoints: CheckpointFolder) -> int | None:
    """The step from which a run that did not finish can go on."""
    if read_record(checkpoints.path) is None:
        return None
    return checkpoints.newest_step or 0


def _advice(tracker: Tracker, checkpoints: CheckpointFolder) -> str:
    """How a run that did not finish is resumed, if it can be; the end of a sentence."""
    if _resumes_at(checkpoints) is None:
        return ""
    return f"; to resume it: aimbot-lab resume {tracker.run_id}"


def _conclude(
    result: RunResult,
    tracker: Tracker,
    checkpoints: CheckpointFolder,
    *,
    rescued: Path | None,
) -> RunResult:
    """End the run, and report what is missing of it."""
    if result.status == "KILLED" or result.spent_steps:
        result = replace(result, resumes_at=_resumes_at(checkpoints))
    tracker.log_text(json.dumps(result.kept(), indent=1) + "\n", RESULT_NAME)
    tracker.set_note(note(result))
    tracker.set_tags({**outcome_tags(result), "lab.state_sha256": result.state_sha256})
    if result.spent_steps:  # last, after all that would be missing if this process died now
        with suppress(OSError):
            note_spent_steps(checkpoints.path, result.steps)
    report = tracker.finish(result.status, resumable=result.spent_steps)
    return replace(
        result,
        entries_waiting=report.waiting,
        entries_refused=report.refused,
        entries_dropped=report.dropped,
        tracking_fault=report.failure,
        agent_folder=str(rescued) if rescued else None,
    )


def _result(
    request: RunRequest, training: Training, tracker: Tracker, ended: TrainingOutcome
) -> RunResult:
    progress = training.progress
    status: RunStatus = "FINISHED" if progress.goal_reached else "FAILED"
    return RunResult(
        run_id=tracker.run_id,
        name=request.run_name,
        status="KILLED" if ended.stopped else status,
        tracking_uri=tracker.tracking_uri,
        experiment_id=tracker.experiment_id,
        seed=request.curriculum.config.seed,
        steps=ended.steps,
        seconds=ended.seconds,
        steps_per_second=speed(ended.steps, ended.seconds),
        state_sha256=ended.state_sha256,
        lessons=progress.lesson_reports,
        cells=progress.cell_reports,
        held_back_by=progress.held_back_by(),
        missing=progress.missing,
        has_wins=training.env.world.spec.has_wins,
        regressions=tuple(progress.regressions),
        entries_waiting=0,
        init_from=request.start_ref and request.start_ref.source,
    )
