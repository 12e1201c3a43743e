"""One trial from its claim to its end: a training per seed, scored, kept, perhaps given up."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import exp, log

import numpy as np
from optuna.trial import TrialState

from aimbot_lab.foundation.errors import ConfigurationError, LabError, RunFailedError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.sweep.schedules import rungs, should_prune, steps_allowed
from aimbot_lab.sweep.settings import Choices, Dimension, SweepFile
from aimbot_lab.sweep.space import Params
from aimbot_lab.sweep.storage import RENEWALS, STORAGE_ERRORS
from aimbot_lab.sweep.trial_queue import REASON, SCORE, Claim, TrialQueue
from aimbot_lab.sweep.trial_runs import (
    Stage,
    TrainingMonitor,
    TrialScore,
    TrialTracker,
    TrialTraining,
    WorkerContext,
    delete_checkpoints,
)

POLL_SECONDS = 0.05
BEST_RATE = 0.95  # the win rate at the optimum
STEEPNESS = 8.0  # how fast it falls off

MEAN = "mean_so_far"  # attribute of a trial that was given up, where it is known


def planted(trial_training: TrialTraining, monitor: TrainingMonitor) -> TrialScore | None:
    """Wins drawn at the rate given by the distance to the optimum, with common random numbers."""
    began, seconds = time.monotonic(), trial_training.sweep.objective.seconds
    while (gone := time.monotonic() - began) < seconds:
        if monitor.should_stop():
            return None
        monitor.at(int(1000 * gone), int(1000 * seconds), None)
        time.sleep(POLL_SECONDS)
    rate = planted_rate(trial_training.sweep, trial_training.params)
    luck = np.random.default_rng([trial_training.seed, trial_training.evaluation_seed]).random(
        trial_training.episodes
    )
    wins = int((luck < rate).sum())
    return TrialScore(
        seed=trial_training.seed,
        value=wins / trial_training.episodes,
        steps=0,
        seconds=gone,
        episodes=trial_training.episodes,
        wins=wins,
        cells={"planted": wins / trial_training.episodes},
    )


def planted_rate(sweep: SweepFile, params: Params) -> float:
    """The true win rate of the made-up task: 0.95 exp(-8 sum of z^2).

    z is a number's distance from its optimum as a share of its range, of the logarithms where the
    range is one of factors.
    """
    squares = (
        _distance(sweep.search[key], params[key], best) ** 2
        for key, best in sweep.objective.optimum.items()
    )
    return BEST_RATE * exp(-STEEPNESS * sum(squares))


def _distance(dimension: Dimension, value: float, best: float) -> float:
    if isinstance(dimension, Choices):
        return 0.0
    if dimension.log:
        return log(value / best) / log(dimension.high / dimension.low)
    return (value - best) / (dimension.high - dimension.low)


def measure(trial_training: TrialTraining, monitor: TrainingMonitor) -> TrialScore | None:
    """What the training is worth by its sweep's measure; None where it was ended.

    Raises RunFailedError and ConfigurationError for a training that these values do not allow.
    """
    found = trial_training.sweep.measure
    if not found.trains:
        return planted(trial_training, monitor)
    from aimbot_lab.sweep.trained import score_by_episodes, steps_to_goal  # which load torch

    return (steps_to_goal if found.counts_steps else score_by_episodes)(trial_training, monitor)


def seeds_of(sweep: SweepFile, stage: Stage) -> list[int]:
    """The seeds of a trial's trainings, the same for all trials of the stage."""
    count = sweep.seeds if stage == "search" else sweep.confirm.seeds
    return [derive_seed(sweep.seed, stage, "training", index) for index in range(count)]


def training_of(
    context: WorkerContext, stage: Stage, *, params: Mapping[str, object], seed: int
) -> TrialTraining:
    """The training of a trial's `params` on `seed`, without a name or tags."""
    sweep = context.record.config
    confirming = stage == "confirm"
    return TrialTraining(
        sweep=sweep,
        base=context.record.base,
        params=params,
        seed=seed,
        evaluation_seed=derive_seed(sweep.seed, stage, "evaluation"),
        episodes=sweep.confirm.episodes if confirming else sweep.objective.episodes,
        name="",
        tags={},
        data_folder=context.data_folder,
        tracking_uri=context.tracking_uri,
    )


def value_of(scores: Sequence[TrialScore]) -> float:
    """A trial's value: the mean over its trainings."""
    return sum(score.value for score in scores) / len(scores)


def score_key(index: int) -> str:
    """The attribute that keeps a training's score."""
    return f"{SCORE}{index}"


def run_trial(context: WorkerContext, queue: TrialQueue, claim: Claim, stage: Stage) -> None:
    """Run what is left of a trial and end it, or leave it for later where it is to stop."""
    with _renewed(queue, claim) as lost, TrialTracker.open(context, queue, claim, stage) as tracker:
        run = _TrialRun(context, queue, claim, stage=stage, lost=lost)
        try:
            scores = run.scores(tracker)
        except (RunFailedError, ConfigurationError) as error:  # these values allow no training
            queue.note(claim, REASON, str(error).splitlines()[0])
            queue.finish(claim, TrialState.FAIL)
            tracker.end("FAILED", str(error))
            return
        if run.pruned:
            queue.note(claim, MEAN, run.mean_so_far(scores))
            queue.finish(claim, TrialState.PRUNED)
            tracker.end("KILLED", "Given up: not among the best.")
        elif run.stopped:
            queue.give_back(claim)
            tracker.end("KILLED", "Stopped; resumed with the sweep.")
        else:
            queue.finish(claim, TrialState.COMPLETE, value_of(scores))
            tracker.end("FINISHED", "All trainings done.", value=value_of(scores))


@contextmanager
def _renewed(queue: TrialQueue, claim: Claim) -> Iterator[threading.Event]:
    """Keep the claim's lease while the block runs; the event says that it was lost."""
    lost, over = threading.Event(), threading.Event()
    pause = queue.lease_seconds / RENEWALS

    def renew() -> None:
        while not over.wait(pause):
            try:
                if not queue.renew(claim):
                    lost.set()
                    return
            except LabError:
                continue  # the storage may come back before the lease is over

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        over.set()
        thread.join()


class _TrialRun:
    """The trainings of one trial, one after the other; also the watch over each."""

    def __init__(
        self,
        context: WorkerContext,
        queue: TrialQueue,
        claim: Claim,
        *,
        stage: Stage,
        lost: threading.Event,
    ) -> None:
        self.pruned = self.stopped = False
        self._context, self._queue, self._claim = context, queue, claim
        self._stage: Stage = stage
        self._sweep = context.record.config
        self._lost = lost
        self._index = 0
        self._seeds = seeds_of(self._sweep, stage)
        self._reports = dict(claim.reports)
        self._judged = 0  # the steps after which it was last compared with others
        self._limit = (
            steps_allowed(self._sweep, queue.trials, claim.number) if stage == "search" else None
        )
        self._before = 0  # steps of the trainings that have ended

    def scores(self, tracker: TrialTracker) -> list[TrialScore]:
        """The scores of its trainings; fewer where it was stopped or given up."""
        found = []
        for index, seed in enumerate(self._seeds):
            self._index = index
            kept = self._claim.attributes.get(score_key(self._index))
            score = TrialScore(**kept) if kept else self._train(seed, tracker)
            if score is None:
                break
            found.append(score)
            self._before += score.steps
            if self.pruned or self._prunes_after(score):
                break
        return found

    def mean_so_far(self, scores: Sequence[TrialScore]) -> float | None:
        """What a trial that was given up counts with.

        In a race that is the limit, which its mean is known to exceed: the step at which that was
        seen may differ where its worker died.
        """
        return self._limit or (value_of(scores) if scores else None)

    def _train(self, seed: int, tracker: TrialTracker) -> TrialScore | None:
        trial_training = training_of(
            self._context, self._stage, params=self._claim.params, seed=seed
        )
        trial_training = tracker.named(trial_training, self._index)
        score = self._measured(trial_training)
        if score is None:
            self.stopped = not self.pruned
            if self.pruned:
                delete_checkpoints(trial_training)
        elif self._queue.note(self._claim, score_key(self._index), asdict(score)):
            tracker.log(self._index, score)
        else:
            self._lost.set()
            self.stopped, score = True, None
        return score

    def _measured(self, trial_training: TrialTraining) -> TrialScore | None:
        try:
            return measure(trial_training, self)
        except (LabError, *STORAGE_ERRORS):
            raise
        except Exception as error:
            # Networks too large for the memory, for example: not a reason to end the sweep.
            raise RunFailedError(f"{type(error).__name__}: {error}") from error

    def should_stop(self) -> bool:
        """Whether the present training is to be interrupted."""
        return self.pruned or self._lost.is_set() or self._context.monitor.should_stop()

    def at(self, step: int, steps: int, value: float | None) -> None:
        """Tell how far it is, and compare it with others after certain steps."""
        share = (self._index + min(step / max(steps, 1), 1.0)) / len(self._seeds)
        self._context.monitor.progress(self._stage, self._claim.number, share)
        self._race(self._before + step)
        if self._stage != "search" or value is None:
            return
        taken = self._index * steps + step
        due = [rung for rung in rungs(self._sweep, steps * len(self._seeds)) if rung <= taken]
        if due and due[-1] != self._judged:
            # Once more where another worker had got here: it may have died before it gave up.
            self._judged = due[-1]
            if due[-1] not in self._reports:
                self._report({due[-1]: value})
            self.pruned = self._should_prune(up_to=due[-1])

    def _race(self, steps: int) -> None:
        """Give the trial up where its `steps` so far are more than it is allowed."""
        if self._limit is not None and steps > self._limit * (self._index + 1):
            self.pruned = True

    def _prunes_after(self, score: TrialScore) -> bool:
        self._race(self._before)  # after the last one too: a late look must not save it
        if self.pruned:
            return True
        last = self._index == len(self._seeds) - 1
        if self._stage != "search" or self._sweep.pruner.kind != "wilcoxon" or last:
            return False
        first = self._index * len(score.cells)
        self._report({first + place: rate for place, rate in enumerate(score.cells.values())})
        self.pruned = self._should_prune()
        return self.pruned

    def _report(self, values: Mapping[int, float]) -> None:
        for step, value in values.items():
            self._reports[step] = value
            self._queue.report(self._claim, step, value)

    def _should_prune(self, up_to: int | None = None) -> bool:
        number = self._claim.number
        trials = self._queue.trials[:number]
        own = {k: value for k, value in self._reports.items() if up_to is None or k <= up_to}
        return should_prune(self._sweep, trials, number, self._claim.params, own)
