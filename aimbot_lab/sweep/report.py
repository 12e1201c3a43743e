"""A sweep as people and programs read it: its trials, the best, and the best once more."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from aimbot_lab.foundation.intervals import wilson
from aimbot_lab.sweep.board import DEATHS, LEASE, REASON
from aimbot_lab.sweep.plans import SEARCH_TRIAL
from aimbot_lab.sweep.record import Record, ranked
from aimbot_lab.sweep.space import default_params
from aimbot_lab.sweep.trial import score_key
from aimbot_lab.sweep.trial_runs import RUN

STATES = {
    TrialState.COMPLETE: "done",
    TrialState.PRUNED: "given up",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


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


@dataclass(frozen=True)
class Confirmed:
    """A trial's values on fresh seeds, beside what it was chosen for."""

    number: int  # of the trial whose values these are
    is_default: bool
    params: Mapping[str, Any]
    searched: float | None  # the value in the search
    value: float | None
    lower: float | None
    upper: float | None
    trainings: Sequence[Mapping[str, Any]]
    gain: float | None  # over the defaults, mean over the pairs of trainings on the same seed
    gain_lower: float | None  # 95 % t interval over the pairs
    gain_upper: float | None


@dataclass(frozen=True)
class SweepReport:
    """A sweep at one moment."""

    name: str
    storage: str
    measure: str
    total: int
    ended: int
    status: str  # "running", "confirming" or "done"
    trials: Sequence[TrialReport]
    confirmed: Sequence[Confirmed]
    best: int | None  # the trial to use: by the confirming values where there are any

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        return {"schema": 1, **asdict(self)}

    @property
    def best_trial(self) -> TrialReport | None:
        """The best trial so far."""
        return next((trial for trial in self.trials if trial.number == self.best), None)


def report(record: Record) -> SweepReport:
    """What has become of the sweep so far."""
    board = record.search_board()
    trials = board.trials
    total = board.plan.total(trials)
    ended = sum(trial.state.is_finished() for trial in trials)
    confirming = record.confirm_board() if ended == total else None
    again = confirming.trials if confirming is not None else []
    confirmed = _confirmed(record, trials, again)
    is_done = ended == total and (confirming is None or confirming.is_done())
    return SweepReport(
        name=record.name,
        storage=record.storage.address.shown,
        measure=record.config.objective.measure,
        total=total,
        ended=ended,
        status="done" if is_done else "confirming" if ended == total else "running",
        trials=[trial_report(trial) for trial in trials],
        confirmed=confirmed,
        best=_best(record, trials, confirmed if is_done else []),
    )


def trial_report(trial: FrozenTrial) -> TrialReport:
    """One trial as it stands."""
    scores = trainings(trial)
    value = trial.value if trial.state == TrialState.COMPLETE else None
    if value is None and scores:
        value = statistics.fmean(score["value"] for score in scores)
    lower, upper = _interval(scores)
    lease = trial.user_attrs.get(LEASE)
    return TrialReport(
        number=trial.number,
        state=STATES[trial.state],
        params=trial.params,
        value=value,
        lower=lower,
        upper=upper,
        trainings=scores,
        seconds=None if trial.duration is None else trial.duration.total_seconds(),
        host=lease["host"] if lease else None,
        deaths=trial.user_attrs.get(DEATHS, 0),
        reason=trial.user_attrs.get(REASON),
        run_id=trial.user_attrs.get(RUN),
    )


def trainings(trial: FrozenTrial) -> list[Mapping[str, Any]]:
    """The scores of a trial's trainings so far, in the order of their seeds."""
    found: list[Mapping[str, Any]] = []
    while (score := trial.user_attrs.get(score_key(len(found)))) is not None:
        found.append(score)
    return found


def _interval(scores: Sequence[Mapping[str, Any]]) -> tuple[float | None, float | None]:
    """At 95 % for a win rate: over the trainings, over the episodes where there is but one."""
    episodes = sum(score["episodes"] for score in scores)
    if not episodes:
        return None, None
    if len(scores) > 1:
        lower, upper = _student([score["value"] for score in scores])
        return max(lower, 0.0), min(upper, 1.0)
    rate = wilson(sum(score["wins"] for score in scores), episodes)
    return rate.lower, rate.upper


def _student(values: Sequence[float]) -> tuple[float, float]:
    """The t interval at 95 % of the mean of two values or more.

    The trainings are what is drawn at random, so they are what is counted, not the episodes.
    """
    from scipy.stats import t as student  # takes a second to load

    mean, count = statistics.fmean(values), len(values)
    half = float(student.ppf(0.975, count - 1)) * statistics.stdev(values) / sqrt(count)
    return mean - half, mean + half


def _confirmed(
    record: Record, trials: Sequence[FrozenTrial], again: Sequence[FrozenTrial]
) -> list[Confirmed]:
    done = [trial for trial in again if trial.state == TrialState.COMPLETE]
    has_defaults = default_params(record.config.search, record.base) is not None
    defaults = next((trial for trial in done if has_defaults and _number(trial) == 0), None)
    sign = -1 if record.config.maximizes else 1
    found = [_one_confirmed(trial, defaults, trials) for trial in done]
    return sorted(found, key=lambda one: (sign * (one.value or 0.0), one.number))


def _one_confirmed(
    trial: FrozenTrial, defaults: FrozenTrial | None, trials: Sequence[FrozenTrial]
) -> Confirmed:
    number, scores = _number(trial), trainings(trial)
    lower, upper = _interval(scores)
    gain = _gain(scores, trainings(defaults)) if defaults not in (None, trial) else None
    return Confirmed(
        number=number,
        is_default=trial is defaults,
        params=trial.params,
        searched=trials[number].value,
        value=trial.value,
        lower=lower,
        upper=upper,
        trainings=scores,
        gain=gain[0] if gain else None,
        gain_lower=gain[1] if gain else None,
        gain_upper=gain[2] if gain else None,
    )


def _gain(
    own: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
) -> tuple[float, float | None, float | None]:
    """Mean difference over the pairs of trainings, with its t interval at 95 %."""
    pairs = [a["value"] - b["value"] for a, b in zip(own, others, strict=True)]
    mean = statistics.fmean(pairs)
    return (mean, *_student(pairs)) if len(pairs) > 1 else (mean, None, None)


def _number(trial: FrozenTrial) -> int:
    return int(trial.user_attrs[SEARCH_TRIAL])


def _best(record: Record, trials: list[FrozenTrial], confirmed: Sequence[Confirmed]) -> int | None:
    if confirmed:
        return confirmed[0].number
    best = ranked(record.config, trials)
    return best[0].number if best else None
