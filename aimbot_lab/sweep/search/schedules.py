"""Which trials a sweep consists of: the search, then the confirmation of the best few."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial

from aimbot_lab.experiment.config.document import LoadedCurriculum
from aimbot_lab.sweep.search.space import default_params, distributions
from aimbot_lab.sweep.search.suggest import suggest, visible
from aimbot_lab.sweep.settings import SweepFile
from aimbot_lab.sweep.trial_queue import SCORE, NewTrial

SEARCH_TRIAL = "search_trial"  # attribute of a confirming trial: whose values it has
Candidate = int | str  # the number of a search's trial, or the name of values in `confirm.also`


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

    def due(self, trials: Sequence[FrozenTrial]) -> NewTrial | None:
        """The trial that follows `trials`."""
        if not self.is_due(trials):
            return None
        first = not trials and self._defaults is not None
        params = self._defaults if first else suggest(self._sweep, trials)
        return NewTrial(params or {}, self._distributions, {})


class ConfirmSchedule:
    """Given values again, on fresh seeds.

    Those of the trials `retried`, which failed, are due once more; what these had is kept.
    """

    def __init__(
        self,
        sweep: SweepFile,
        candidates: Mapping[Candidate, Mapping[str, Any]],
        *,
        retried: Collection[int] = (),
    ) -> None:
        self._distributions = distributions(sweep.search)
        self._candidates, self._retried = candidates, retried

    def total(self, trials: Sequence[FrozenTrial]) -> int:
        """How many there will be: a sweep that is given more trials may find other best ones."""
        return len(trials) + len(self._left(trials))

    def is_due(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether a candidate is left."""
        return bool(self._left(trials))

    def due(self, trials: Sequence[FrozenTrial]) -> NewTrial | None:
        """The next candidate."""
        for candidate in self._left(trials):
            before = [one for one in trials if one.user_attrs[SEARCH_TRIAL] == candidate]
            kept = before[-1].user_attrs if before else {}
            scores = {key: value for key, value in kept.items() if key.startswith(SCORE)}
            attributes = {**scores, SEARCH_TRIAL: candidate}
            return NewTrial(self._candidates[candidate], self._distributions, attributes)
        return None

    def _left(self, trials: Sequence[FrozenTrial]) -> list[Candidate]:
        counted = (trial for trial in trials if trial.number not in self._retried)
        taken = {trial.user_attrs[SEARCH_TRIAL] for trial in counted}
        return [number for number in self._candidates if number not in taken]
