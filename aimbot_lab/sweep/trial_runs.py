"""Trainings of trials, what they were worth, and the runs of sweep, trials and trainings."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, Protocol

from aimbot_lab.experiment.config.document import LoadedCurriculum, with_overrides
from aimbot_lab.experiment.runs.run_record import close_orphan_runs, resumable_runs
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.sweep.schedules import SEARCH_TRIAL, Candidate
from aimbot_lab.sweep.settings import TRAINING_VALUE, TRIAL_VALUE, SweepFile
from aimbot_lab.sweep.space import Params, override_text, overrides
from aimbot_lab.sweep.trial_queue import Claim, TrialQueue
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run, rejoin_run
from aimbot_lab.tracking.tracker import RunStatus, Tracker


@dataclass(frozen=True)
class TrialTraining:
    """One training of a trial, and how it is scored."""

    sweep: SweepFile
    base: LoadedCurriculum
    params: Params
    seed: int
    evaluation_seed: int
    episodes: int
    name: str  # of its run
    tags: Mapping[str, str]
    data_folder: DataFolder
    tracking_uri: str | None = None
    key: str | None = None  # to find what is left of it after a stop or a death

    def curriculum(self) -> LoadedCurriculum:
        """What is trained. It is tracked where the sweep is: MLflow nests no run below one of
        another experiment."""
        where = asdict(self.sweep.tracking).items()
        tracking = [override_text(f"tracking.{key}", value) for key, value in where]
        given = [*overrides(self.params, self.sweep.search), f"seed={self.seed}", *tracking]
        return with_overrides(self.base, given)


@dataclass(frozen=True)
class TrialScore:
    """What one training was worth."""

    seed: int
    value: float
    steps: int
    seconds: float
    censored: bool = False  # the steps were spent before the goal: the value is a lower bound
    episodes: int = 0
    wins: int | None = 0  # None: the value is not a win rate
    cells: Mapping[str, float] = field(default_factory=dict)  # value by target and difficulty
    run_id: str | None = None
    state_sha256: str | None = None  # of all that was learned


def delete_checkpoints(trial_training: TrialTraining) -> None:
    """Delete the checkpoints of `trial_training`, which will not be resumed."""
    if trial_training.key is not None:
        for run in resumable_runs(trial_training.data_folder, key=trial_training.key):
            run.folder.forget_checkpoints()


class TrainingMonitor(Protocol):
    """What follows a training, and may end it."""

    def should_stop(self) -> bool:
        """Whether it is to be interrupted now."""

    def at(self, step: int, steps: int, value: float | None) -> None:
        """It has taken `step` of `steps`, and is worth `value` by its latest episodes."""


Stage = Literal["search", "confirm"]

RUN = "run"  # attribute of a trial: the id of its run
PARENT_TAG = "mlflow.parentRunId"


class WorkerMonitor(Protocol):
    """What follows a worker, and may stop it."""

    def should_stop(self) -> bool:
        """Whether it is to leave its trial for later."""

    def progress(self, stage: Stage, number: int, share: float) -> None:
        """It has taken that share of the steps of its trial."""


@dataclass(frozen=True)
class WorkerContext:
    """What a worker works with."""

    record: SweepRecord
    data_folder: DataFolder
    tracking_uri: str | None
    monitor: WorkerMonitor


@dataclass(frozen=True)
class TrialTracker:
    """One trial's run. A trial that is only confirmed has none: its trainings lie below the run
    of the trial whose values it has."""

    tracker: Tracker | None
    parent: str | None  # the id of the run below which its trainings lie
    name: str
    stage: Stage
    tags: Mapping[str, str]

    @classmethod
    @contextmanager
    def open(
        cls, context: WorkerContext, queue: TrialQueue, claim: Claim, stage: Stage
    ) -> Iterator["TrialTracker"]:
        """The run of the trial, a new one or the one it had before its worker died."""
        name, tags = f"{context.record.name} {claim.number}", context.record.tags
        if stage == "confirm":
            candidate = claim.attributes[SEARCH_TRIAL]
            again = f"{context.record.name} {candidate} again"
            yield cls(None, parent=_run_of(context, candidate), name=again, stage=stage, tags=tags)
            return
        tracker = _open(context, queue, claim, name)
        opened = cls(tracker, parent=tracker.run_id, name=name, stage=stage, tags=tags)
        try:
            yield opened
        except BaseException:
            tracker.finish("KILLED")
            raise

    def named(self, trial_training: TrialTraining, index: int) -> TrialTraining:
        """`trial_training` with the name and tags of the trial's training `index`."""
        sweep = self.name.split(maxsplit=1)[0]
        tags = {**self.tags, "lab.sweep": sweep, "lab.sweep_stage": self.stage}
        if self.parent is not None:
            tags[PARENT_TAG] = self.parent
        key = f"sweep {self.parent} {self.name} {self.stage} {index}"
        return replace(trial_training, name=f"{self.name} seed {index}", tags=tags, key=key)

    def log(self, index: int, score: TrialScore) -> None:
        """Keep what a training was worth."""
        if self.tracker is not None:
            rates = {f"{names.TEST_WIN_RATE}/{cell}": rate for cell, rate in score.cells.items()}
            self.tracker.log_metrics(index, {TRAINING_VALUE: score.value, **rates})

    def end(self, status: RunStatus, outcome: str, *, value: float | None = None) -> None:
        """End the trial's run."""
        if self.tracker is None:
            return
        if value is not None:
            self.tracker.log_metrics(0, {TRIAL_VALUE: value})
        self.tracker.set_tags({"lab.outcome": outcome})
        self.tracker.finish(status)


def _open(context: WorkerContext, queue: TrialQueue, claim: Claim, name: str) -> Tracker:
    config = context.record.config
    tracking = replace(config.tracking, tensorboard=False)  # only its trainings have curves
    before = claim.attributes.get(RUN)
    if before is not None:
        close_orphan_runs(context.data_folder)
        with suppress(StoreError):  # it lies in another machine's store, or is still written to
            return rejoin_run(
                context.data_folder, tracking, before, tracking_uri=context.tracking_uri
            )
    own = {"lab.sweep": config.name, "lab.sweep_trial": str(claim.number)}
    tags = {**context.record.tags, **own}
    parent = context.record.parent_run
    if parent is not None:
        tags[PARENT_TAG] = parent
    description = RunDescription(name, params=dict(claim.params), tags=tags)
    tracker = open_run(
        context.data_folder, tracking, description, tracking_uri=context.tracking_uri
    )
    queue.note(claim, RUN, tracker.run_id)
    return tracker


def _run_of(context: WorkerContext, candidate: Candidate) -> str | None:
    """The run of the trial with that number; the sweep's own where it has none."""
    if isinstance(candidate, str):
        return context.record.parent_run
    trials = context.record.study.get_trials(deepcopy=False)
    return trials[candidate].user_attrs.get(RUN) or context.record.parent_run
