"""The trials of a study: taken by one worker at a time, ended once, picked up after a death."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import optuna
from optuna.trial import FrozenTrial, TrialState

from aimbot_lab.sweep.storage import Lease, Storage, read_lease
from aimbot_lab.tracking.run_folder import Owner

MAX_DEATHS = 5  # of workers on one trial; it takes its worker with it, more likely than not
LEASE, DEATHS, REASON = "lease", "deaths", "reason"
SCORE = "score "  # and the number of the training


class TrialSchedule(Protocol):
    """Which trials a study is made of."""

    def due(self, trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
        """The trial that follows `trials`, to be added; None if there is none, or none yet."""

    def is_due(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether `due` would give a trial; costs nothing."""

    def total(self, trials: Sequence[FrozenTrial]) -> int:
        """How many trials there will be."""


@dataclass(frozen=True)
class Claim:
    """A trial in the hands of one worker."""

    number: int
    trial_id: int
    params: Mapping[str, Any]
    attributes: Mapping[str, Any]  # as they were when it was taken
    reports: Mapping[int, float]
    token: str


class TrialQueue:
    """One study's trials; any number of processes may share it."""

    def __init__(
        self, storage: Storage, study: optuna.Study, schedule: TrialSchedule, *, lease: float
    ) -> None:
        self.study = study
        self.schedule = schedule
        self._storage = storage
        self.lease_seconds = lease

    @property
    def trials(self) -> list[FrozenTrial]:
        """All trials so far in the order of their numbers; not to be changed."""
        return self.study.get_trials(deepcopy=False)

    def is_done(self) -> bool:
        """Whether every trial has ended."""
        trials = self.trials
        ended = sum(trial.state.is_finished() for trial in trials)
        return ended == len(trials) >= self.schedule.total(trials)

    def take(self, owner: Owner) -> Claim | None:
        """A trial for `owner` to work on, None if there is none now."""
        trials, now = self.trials, time.time()
        if not any(self._is_free(t, now) for t in trials) and not self.schedule.is_due(trials):
            return None  # without waiting for the lock
        with self._storage.alone(self.study.study_name) as now:
            for trial in self.trials:
                if self._is_free(trial, now) and not self._gives_up(trial):
                    return self._claim(trial, owner, now)
            if (new := self.schedule.due(self.trials)) is None:
                return None
            self.study.add_trial(new)
            return self._claim(self.trials[-1], owner, now)

    def renew(self, claim: Claim) -> bool:
        """Whether the claim still holds; then it holds for a while more."""
        with self._storage.alone(self.study.study_name) as now:
            lease = self._held(claim)
            if lease is not None:
                self._grant(claim.trial_id, Lease(lease.owner, now + self.lease_seconds))
            return lease is not None

    def note(self, claim: Claim, key: str, value: Any) -> bool:
        """Keep `value` with the trial; whether the claim still held."""
        return self._change(claim, self._storage.optuna.set_trial_user_attr, key, value)

    def report(self, claim: Claim, step: int, value: float) -> bool:
        """Keep an intermediate value; whether the claim still held."""
        return self._change(claim, self._storage.optuna.set_trial_intermediate_value, step, value)

    def finish(self, claim: Claim, state: TrialState, value: float | None = None) -> bool:
        """End the trial, once; whether the claim still held."""
        values = None if value is None else [value]
        return self._change(claim, self._storage.optuna.set_trial_state_values, state, values)

    def give_back(self, claim: Claim) -> None:
        """Leave the trial, with what was kept of it, to the worker that takes it next."""
        self._change(claim, self._free)

    def reap(self) -> list[int]:
        """The numbers of trials whose workers are dead; they now wait for another."""
        running, here = TrialState.RUNNING, time.time()  # the lock's clock makes it certain
        if not any(self._is_free(t, here) for t in self.trials if t.state == running):
            return []
        with self._storage.alone(self.study.study_name) as now:
            left = [trial for trial in self.trials if trial.state == running]
            dead = [trial for trial in left if self._is_free(trial, now)]
            for trial in dead:
                if not self._gives_up(trial):
                    self._count_death(trial)
                    self._free(trial._trial_id)
            return [trial.number for trial in dead]

    def _change(self, claim: Claim, change: Callable[..., object], *given: Any) -> bool:
        """Do `change` to the trial with what is `given`, if the claim holds; whether it does."""
        with self._storage.alone(self.study.study_name):
            held = self._held(claim) is not None
            if held:
                change(claim.trial_id, *given)
            return held

    def _is_free(self, trial: FrozenTrial, now: float) -> bool:
        if trial.state == TrialState.WAITING:
            return True
        lease = _lease(trial)
        return trial.state == TrialState.RUNNING and (lease is None or lease.is_over(now))

    def _gives_up(self, trial: FrozenTrial) -> bool:
        """Whether `trial` has cost too many workers; then it has failed."""
        if trial.state != TrialState.RUNNING or trial.user_attrs.get(DEATHS, 0) < MAX_DEATHS:
            return False
        storage, trial_id = self._storage.optuna, trial._trial_id
        storage.set_trial_user_attr(trial_id, REASON, f"its worker died {MAX_DEATHS + 1} times")
        storage.set_trial_state_values(trial_id, TrialState.FAIL)
        return True

    def _claim(self, trial: FrozenTrial, owner: Owner, now: float) -> Claim:
        storage, trial_id = self._storage.optuna, trial._trial_id
        if trial.state == TrialState.RUNNING:
            self._count_death(trial)
        # The lease first: a trial that runs always has one.
        self._grant(trial_id, Lease(owner, now + self.lease_seconds))
        storage.set_trial_state_values(trial_id, TrialState.RUNNING)
        fresh = storage.get_trial(trial_id)
        return Claim(
            number=fresh.number,
            trial_id=trial_id,
            params=fresh.params,
            attributes=fresh.user_attrs,
            reports=fresh.intermediate_values,
            token=owner.token,
        )

    def _count_death(self, trial: FrozenTrial) -> None:
        deaths = trial.user_attrs.get(DEATHS, 0) + 1
        self._storage.optuna.set_trial_user_attr(trial._trial_id, DEATHS, deaths)

    def _free(self, trial_id: int) -> None:
        self._storage.optuna.set_trial_state_values(trial_id, TrialState.WAITING)
        self._storage.optuna.set_trial_user_attr(trial_id, LEASE, None)

    def _grant(self, trial_id: int, lease: Lease) -> None:
        self._storage.optuna.set_trial_user_attr(trial_id, LEASE, lease.as_attribute())

    def _held(self, claim: Claim) -> Lease | None:
        """The claim's lease, None where another worker has the trial or it has ended."""
        trial = self._storage.optuna.get_trial(claim.trial_id)
        lease = _lease(trial)
        running = trial.state == TrialState.RUNNING
        return lease if lease and running and lease.owner.token == claim.token else None


def _lease(trial: FrozenTrial) -> Lease | None:
    return read_lease(trial.user_attrs.get(LEASE))
