"""Schedules: the trials of a sweep, first the search, then the confirmation of the best.

Whether a trial is given up early is a pure function of its reports and of earlier trials'.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from optuna.pruners import WilcoxonPruner
from optuna.trial import FrozenTrial, TrialState, create_trial

from aimbot_lab.experiment.config.document import LoadedCurriculum
from aimbot_lab.sweep.settings import SweepFile
from aimbot_lab.sweep.space import Params, default_params, distributions, suggest, view, visible
from aimbot_lab.sweep.trial_queue import SCORE

SEARCH_TRIAL = "search_trial"  # attribute of a confirming trial: whose values it has
Candidate = int | str  # the number of a search's trial, or the name of values in `confirm.also`

Reports = Mapping[int, float]  # value by training and cell (wilcoxon), or by steps (halving)
MIN_PAIRS = 4  # fewer can't reach a p value below 0.1


class SearchSchedule:
    """The curriculum's own values first, then what the sampler suggests."""

    def __init__(self, sweep: SweepFile, base: LoadedCurriculum, trials: int) -> None:
        self._sweep = sweep
        self._distributions = distributions(sweep.search)
        self._defaults = default_params(sweep.search, base)
        self._trials = trials

    def total(self, trials: Sequence[FrozenTrial]) -> int:
        """How many trials there will be."""
        return max(self._trials, len(trials))

    def is_due(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether all that the next trial is chosen from has ended."""
        number = len(trials)
        known = trials[: visible(self._sweep, number)]
        return number < self._trials and all(trial.state.is_finished() for trial in known)

    def due(self, trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
        """The trial that follows `trials`."""
        if not self.is_due(trials):
            return None
        first = not trials and self._defaults is not None
        params = self._defaults if first else suggest(self._sweep, trials)
        return create_trial(
            state=TrialState.WAITING, params=dict(params or {}), distributions=self._distributions
        )


class ConfirmSchedule:
    """Given values again, on fresh seeds.

    Those of the trials `retried`, which failed, are due once more; what these had is kept.
    """

    def __init__(
        self,
        sweep: SweepFile,
        candidates: Mapping[Candidate, Mapping[str, Any]],
        *,
        retried: Collection[int],
    ) -> None:
        self._distributions = distributions(sweep.search)
        self._candidates, self._retried = candidates, retried

    def total(self, trials: Sequence[FrozenTrial]) -> int:
        """How many there will be: a sweep that is given more trials may find other best ones."""
        return len(trials) + len(self._left(trials))

    def is_due(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether a candidate is left."""
        return bool(self._left(trials))

    def due(self, trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
        """The next candidate."""
        for candidate in self._left(trials):
            before = [one for one in trials if one.user_attrs[SEARCH_TRIAL] == candidate]
            kept = before[-1].user_attrs if before else {}
            scores = {key: value for key, value in kept.items() if key.startswith(SCORE)}
            attributes = {**scores, SEARCH_TRIAL: candidate}
            return create_trial(
                state=TrialState.WAITING,
                params=dict(self._candidates[candidate]),
                distributions=self._distributions,
                user_attrs=attributes,
            )
        return None

    def _left(self, trials: Sequence[FrozenTrial]) -> list[Candidate]:
        counted = (trial for trial in trials if trial.number not in self._retried)
        taken = {trial.user_attrs[SEARCH_TRIAL] for trial in counted}
        return [number for number in self._candidates if number not in taken]


def should_prune(
    sweep: SweepFile, trials: Sequence[FrozenTrial], number: int, params: Params, reports: Reports
) -> bool:
    """Whether trial `number` of `trials`, with these reports so far, is to be given up.

    Only the trials that its values were chosen from count.
    """
    if number == 0:
        return False  # what everything is compared with
    if sweep.pruner.kind == "wilcoxon":
        return _wilcoxon(sweep, trials, number, params, reports)
    return sweep.pruner.kind == "halving" and _halving(sweep, trials, number, reports)


def rungs(sweep: SweepFile, steps: int) -> list[int]:
    """The numbers of steps, up to `steps`, after which halving compares trials."""
    if sweep.pruner.kind != "halving":
        return []
    found = [sweep.pruner.first_steps]
    while found[-1] * sweep.pruner.reduction < steps:
        found.append(found[-1] * sweep.pruner.reduction)
    return found


def steps_allowed(sweep: SweepFile, trials: Sequence[FrozenTrial], number: int) -> float | None:
    """The mean steps above which `race` gives trial `number` up, None if there is no limit.

    They are the least value among the trials that its values were chosen from, and the margin.
    Those have all ended before it began, so the limit is the same for every worker.
    """
    if sweep.pruner.kind != "race" or number == 0:
        return None
    known = trials[: visible(sweep, number)]
    values = [t.value for t in known if t.state == TrialState.COMPLETE and t.value is not None]
    return min(values) * (1.0 + sweep.pruner.margin) if values else None


def _wilcoxon(
    sweep: SweepFile, trials: Sequence[FrozenTrial], number: int, params: Params, own: Reports
) -> bool:
    """Whether a paired test finds it worse than the best trial, as Optuna's pruner has it."""
    study = view(sweep, trials, number)
    study.add_trial(
        create_trial(
            state=TrialState.RUNNING,
            params=dict(params),
            distributions=distributions(sweep.search),
            intermediate_values=dict(own),
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is experimental, or that a trial has more pairs
        pruner = WilcoxonPruner(p_threshold=sweep.pruner.p_threshold, n_startup_steps=MIN_PAIRS)
        return pruner.prune(study, study.get_trials()[-1])


def _halving(sweep: SweepFile, trials: Sequence[FrozenTrial], number: int, own: Reports) -> bool:
    """Whether it is not among the best 1/reduction of the trials that got as far."""
    rung = max(own)
    known = trials[: visible(sweep, number)]
    others = [t.intermediate_values[rung] for t in known if rung in t.intermediate_values]
    if len(others) + 1 < sweep.pruner.reduction:
        return False
    go_on = (len(others) + 1) // sweep.pruner.reduction
    return sum(other > own[rung] for other in others) >= go_on
