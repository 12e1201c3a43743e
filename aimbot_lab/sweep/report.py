"""A sweep as people and programs read it: its trials, the best, and the confirmation."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from aimbot_lab.foundation.episodes import MeanInterval, student_errors, student_interval, wilson
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep.record import SweepRecord, Unconfirmed, counted, ranked
from aimbot_lab.sweep.schedules import SEARCH_TRIAL, Candidate
from aimbot_lab.sweep.space import outside_space, scored_with
from aimbot_lab.sweep.storage import damage_reported, is_worked_at
from aimbot_lab.sweep.trial import MEAN, score_key
from aimbot_lab.sweep.trial_queue import DEATHS, LEASE, REASON
from aimbot_lab.sweep.trial_runs import RUN

STATES = {
    TrialState.COMPLETE: "done",
    TrialState.PRUNED: "given up",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}

MIN_SEEDS = 8
FACTORS = (1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0)  # of the steps


@dataclass(frozen=True)
class TrialReport:
    """One trial."""

    number: int
    state: str
    params: Mapping[str, Any]
    value: float | None  # mean over its trainings; of those so far while it is not done
    lower: float | None  # 95 % t interval over these trainings; over the episodes of one
    upper: float | None
    trainings: Sequence[Mapping[str, Any]]  # scores
    seconds: float | None
    host: str | None
    deaths: int  # of workers while they ran it
    reason: str | None  # why it failed
    run_id: str | None
    at_least: bool = False  # the value is a lower bound: steps were spent before the goal


@dataclass(frozen=True)
class Confirmed:
    """Values on fresh seeds, beside what they were chosen for."""

    number: int | None  # of the trial whose values these are; None for values of confirm.also
    is_default: bool
    params: Mapping[str, Any]
    searched: float | None  # the value in the search
    value: float | None
    lower: float | None
    upper: float | None
    trainings: Sequence[Mapping[str, Any]]
    gain: float | None  # over the defaults, mean over the pairs of trainings on the same seed
    gain_lower: float | None  # t interval over the pairs; all together hold the truth in 95 %;
    # None: of a single pair, or of pairs that are all alike
    gain_upper: float | None
    name: str | None = None  # in confirm.also
    censored: int = 0  # trainings that spent their steps: the value and the gain are bounds
    searched_at_least: bool = False  # whether the value in the search is a lower bound

    @property
    def label(self) -> str:
        """What it is called in a table."""
        return self.name or f"{self.number}" + (" (defaults)" if self.is_default else "")


@dataclass(frozen=True)
class SweepReport:
    """A sweep at one moment."""

    name: str
    storage: str
    measure: str
    total: int
    ended: int
    status: str  # "running", "confirming", "stopped" or "done"
    trials: Sequence[TrialReport]
    confirmed: Sequence[Confirmed]
    best: int | None  # the trial to use: clearly better than the defaults, or these
    maximizes: bool = True  # whether a greater value is better
    to_confirm: int = 0  # values that are confirmed in all, once the search is over
    confirm_ended: int = 0  # of these
    unconfirmed: Sequence[Unconfirmed] = ()  # of these again
    outside: Sequence[str] = ()  # the curriculum's own values that the search does not hold

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        return {"schema": 1, **asdict(self), "verdict": verdict(self)}

    @property
    def best_trial(self) -> TrialReport | None:
        """The best trial so far."""
        return next((trial for trial in self.trials if trial.number == self.best), None)


@damage_reported()
def report(record: SweepRecord) -> SweepReport:
    """What has become of the sweep so far."""
    queue = record.search_queue()
    trials = queue.trials
    total = queue.schedule.total(trials)
    ended = sum(trial.state.is_finished() for trial in trials)
    confirming = record.confirm_queue() if ended == total else None
    again, planned = list[FrozenTrial](), 0
    if confirming is not None:
        again, every = counted(confirming), confirming.trials
        planned = len(again) + confirming.schedule.total(every) - len(every)
    confirmed = _confirmed(record, trials, again, comparisons=planned - 1)
    is_done = ended == total and (confirming is None or confirming.is_done())
    return SweepReport(
        name=record.name,
        storage=record.storage.address.shown,
        measure=record.config.objective.measure,
        total=total,
        ended=ended,
        status=_status(record, is_done=is_done, searched=ended == total),
        trials=[trial_report(trial) for trial in trials],
        confirmed=confirmed,
        best=_best(record, trials, confirmed if is_done else []),
        maximizes=record.config.maximizes,
        to_confirm=planned,
        confirm_ended=sum(trial.state.is_finished() for trial in again),
        unconfirmed=record.unconfirmed(again),
        outside=outside_space(record.config.search, record.base),
    )


def _status(record: SweepRecord, *, is_done: bool, searched: bool) -> str:
    if is_done:
        return "done"
    if not is_worked_at(record.study):
        return "stopped"
    return "confirming" if searched else "running"


NO_DEFAULTS = "nothing is compared with the file's own values, which lie outside the search:"


def verdict(report: SweepReport) -> str | None:
    """What the confirmation found, in a sentence; None where it compares nothing (yet)."""
    if report.confirmed and report.outside:
        return f"{NO_DEFAULTS} {', '.join(report.outside)}"
    if report.status != "done" or not any(map(_is_compared, report.confirmed)):
        return None
    better = [one for one in report.confirmed if is_better(one, maximizes=report.maximizes)]
    searched = [one for one in better if one.number is not None]
    if not searched:
        return "no trial is clearly better than the defaults"
    names = " and ".join(one.label for one in searched)
    return f"clearly better than the defaults: trial {names}"


def _is_compared(one: Confirmed) -> bool:
    """Whether several seeds compare it with the defaults, also where their gains are alike."""
    return one.gain_lower is not None or (one.gain is not None and len(one.trainings) > 1)


def is_better(one: Confirmed, *, maximizes: bool) -> bool:
    """Whether the whole interval of its gain over the defaults lies on the better side of 0."""
    if one.gain_lower is None or one.gain_upper is None:
        return False
    return one.gain_lower > 0 if maximizes else one.gain_upper < 0


def trial_report(trial: FrozenTrial) -> TrialReport:
    """One trial as it stands."""
    scores = trainings(trial)
    value = trial.value if trial.state == TrialState.COMPLETE else None
    limit = trial.user_attrs.get(MEAN) if trial.state == TrialState.PRUNED else None
    if value is None and scores:
        value = statistics.fmean(score["value"] for score in scores)
    raced = limit is not None and not any(score["episodes"] for score in scores)
    lower, upper = (None, None) if raced else _interval(scores)
    lease = trial.user_attrs.get(LEASE)
    return TrialReport(
        number=trial.number,
        state=STATES[trial.state],
        params=trial.params,
        value=limit if raced else value,
        lower=lower,
        upper=upper,
        trainings=scores,
        seconds=None if trial.duration is None else trial.duration.total_seconds(),
        host=lease["host"] if lease else None,
        deaths=trial.user_attrs.get(DEATHS, 0),
        reason=trial.user_attrs.get(REASON),
        run_id=trial.user_attrs.get(RUN),
        at_least=raced or _censored(scores) > 0,
    )


def trainings(trial: FrozenTrial) -> list[Mapping[str, Any]]:
    """The scores of a trial's trainings so far, in the order of their seeds."""
    found: list[Mapping[str, Any]] = []
    while (score := trial.user_attrs.get(score_key(len(found)))) is not None:
        found.append(score)
    return found


def _interval(scores: Sequence[Mapping[str, Any]]) -> tuple[float | None, float | None]:
    """At 95 %: over the trainings, over the episodes where there is one, or all are alike.

    None for steps that were spent: they are known to be more, so that an interval says too little.
    """
    episodes = sum(score["episodes"] for score in scores)
    if len(scores) > 1 and not _censored(scores):
        _, lower, upper = student_interval([score["value"] for score in scores])
        if any(score["wins"] is None for score in scores):
            return lower, upper
        if lower is not None and upper is not None:
            return max(lower, 0.0), min(upper, 1.0) if episodes else upper
    if not episodes or scores[0]["wins"] is None:
        return None, None
    rate = wilson(sum(score["wins"] for score in scores), episodes)
    return rate.lower, rate.upper


def _censored(scores: Sequence[Mapping[str, Any]]) -> int:
    """How many trainings spent their steps before the goal."""
    return sum(bool(score.get("censored")) for score in scores)


def _confirmed(
    record: SweepRecord,
    trials: Sequence[FrozenTrial],
    again: Sequence[FrozenTrial],
    *,
    comparisons: int,
) -> list[Confirmed]:
    done = [trial for trial in again if trial.state == TrialState.COMPLETE]
    has_defaults = not outside_space(record.config.search, record.base)
    defaults = next((trial for trial in done if has_defaults and _candidate(trial) == 0), None)
    sign = -1 if record.config.maximizes else 1
    found = [_one_confirmed(trial, defaults, trials, comparisons=comparisons) for trial in done]
    return sorted(found, key=lambda one: (sign * (one.value or 0.0), one.label))


def _one_confirmed(
    trial: FrozenTrial,
    defaults: FrozenTrial | None,
    trials: Sequence[FrozenTrial],
    *,
    comparisons: int,
) -> Confirmed:
    candidate, scores = _candidate(trial), trainings(trial)
    number = None if isinstance(candidate, str) else candidate
    lower, upper = _interval(scores)
    gain = None
    if defaults is not None and defaults is not trial:
        gain = gain_over(_values(trial), _values(defaults), comparisons=comparisons)
    return Confirmed(
        number=number,
        is_default=trial is defaults,
        params=trial.params,
        searched=None if number is None else trials[number].value,
        value=trial.value,
        lower=lower,
        upper=upper,
        trainings=scores,
        gain=gain.mean if gain else None,
        gain_lower=gain.lower if gain else None,
        gain_upper=gain.upper if gain else None,
        name=candidate if isinstance(candidate, str) else None,
        censored=_censored(scores),
        searched_at_least=number is not None and _censored(trainings(trials[number])) > 0,
    )


def _values(trial: FrozenTrial) -> list[float]:
    return [float(score["value"]) for score in trainings(trial)]


def _candidate(trial: FrozenTrial) -> Candidate:
    found: Candidate = trial.user_attrs[SEARCH_TRIAL]
    return found


def _best(
    record: SweepRecord, trials: list[FrozenTrial], confirmed: Sequence[Confirmed]
) -> int | None:
    """The trial to use: of those that are clearly better than the defaults the best.

    Where none is, the defaults; the best by its mean where there are none to compare with, or
    but one pair of trainings; by the search where nothing was confirmed.
    """
    found = [one for one in confirmed if one.number is not None]
    if any(map(_is_compared, confirmed)):
        kept = [o for o in found if o.is_default or is_better(o, maximizes=record.config.maximizes)]
        return kept[0].number
    if found:
        return found[0].number
    best = ranked(record.config, trials)
    return best[0].number if best else None


class Pace:
    """How fast the trials of one stage end, measured from their first progress here on.

    What comes before it (workers that start, kernels that are compiled) comes once and says nothing
    about the speed. `clock` gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began, self._first = clock(), float("inf")

    def seconds_left(
        self, now: SweepReport, at_work: Mapping[tuple[str, int], float]
    ) -> float | None:
        """Until the last trial of the stage ends, at the speed so far."""
        confirming = now.status == "confirming"
        stage = "confirm" if confirming else "search"
        done = now.confirm_ended if confirming else now.ended
        total = now.to_confirm if confirming else now.total
        share = done + sum(share for (where, _), share in at_work.items() if where == stage)
        moment = self._clock()
        if share <= self._first:
            self._began, self._first = moment, share
            return None
        # A trial that has just ended may still be at work.
        return max(total - share, 0.0) * (moment - self._began) / (share - self._first)


def search_cost(record: SweepRecord, *, left: int) -> str:
    """How many trainings a search takes at most, and what comes after it."""
    config = record.config
    text = f"{left} trials of {config.seeds} training{'s' * (config.seeds > 1)} each"
    if config.measure.trains:
        steps = left * config.seeds * record.base.config.train.total_steps
        text += f", {steps:,} steps at most"
        own = [] if config.measure.counts_steps else scored_with(config.search, record.base)
        text += f"; each trial is scored with its own {', '.join(own)}" if own else ""
    if not config.confirm.best:
        return text
    outside = outside_space(config.search, record.base)
    count = config.confirm.best + (not outside) + len(config.confirm.also)
    fresh = f"up to {count} sets of values on {config.confirm.seeds} fresh seeds"
    text += f"; then {fresh} to confirm the best"
    return f"{text}; {NO_DEFAULTS} {', '.join(outside)}" if outside else text


def confirmation_cost(record: SweepRecord, now: SweepReport, *, workers: int) -> str:
    """How many trainings the confirmation takes, and about how long by those of the search."""
    left = now.to_confirm - now.confirm_ended
    seeds = record.config.confirm.seeds
    text = f"confirming: {left} sets of values on {seeds} fresh seeds, {left * seeds} trainings"
    done = [trial for trial in now.trials if trial.state == "done"]
    each = [score["seconds"] for trial in done for score in trial.trainings]
    if not each:
        return text
    minutes = left * seeds * sum(each) / len(each) / min(workers, left or 1) / 60.0
    return f"{text}, about {minutes:.0f} min" if minutes >= 1 else f"{text}, under a minute"


def power(record: SweepRecord) -> Mapping[float, float]:
    """How often a confirmation like this one finds values that take each of FACTORS of the steps.

    Simulated with planted differences from the steps that the defaults took on fresh seeds; the
    share at 1 is that of false findings. Raises ConfigurationError where these are missing.
    """
    if not record.config.measure.counts_steps:
        raise ConfigurationError(f"sweep {record.name!r} does not count steps_to_goal")
    now = report(record)
    defaults = next((one for one in now.confirmed if one.is_default), None)
    if defaults is None or len(defaults.trainings) < MIN_SEEDS:
        raise ConfigurationError(
            f"sweep {record.name!r} has not confirmed the defaults on {MIN_SEEDS} seeds or more, "
            "too few to simulate with"
        )
    steps = [float(score["value"]) for score in defaults.trainings]
    return {
        factor: found_share(
            steps,
            factor,
            seeds=record.config.confirm.seeds,
            comparisons=now.to_confirm - 1,
            limit=float(record.base.config.train.total_steps),
        )
        for factor in FACTORS
    }


def gain_over(own: Sequence[float], others: Sequence[float], *, comparisons: int) -> MeanInterval:
    """What `own` trainings gain over `others` on the same seeds, one of `comparisons`.

    The trainings are what is drawn at random, so they are what is counted, not their episodes.
    """
    pairs = [a - b for a, b in zip(own, others, strict=True)]
    return student_interval(pairs, comparisons=comparisons)


def found_share(
    measured: Sequence[float],
    factor: float,
    *,
    seeds: int,
    comparisons: int,
    limit: float = float("inf"),
    rounds: int = 1000,
) -> float:
    """How often a confirmation detects values that change each training by `factor`.

    A simulation: both arms are drawn with replacement from `measured`, the second multiplied by
    `factor` and cut at `limit`, as trainings are that never pass. Gives the share of `rounds`
    in which the interval of the gain excludes 0; with a factor of 1 it is the share of false
    findings.
    """
    rng = np.random.default_rng(1)
    drawn = rng.choice(np.asarray(measured, np.float64), size=(2, rounds, seeds))
    pairs = np.minimum(drawn[0] * factor, limit) - np.minimum(drawn[1], limit)
    half = student_errors(seeds, comparisons=comparisons) * pairs.std(axis=1, ddof=1)
    varied = np.ptp(pairs, axis=1) > 0
    return float(np.mean(varied & (np.abs(pairs.mean(axis=1)) > half)))
