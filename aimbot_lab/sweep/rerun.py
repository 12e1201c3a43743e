"""A finished trial run again with the same values and seeds: is the result the same?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from optuna.trial import TrialState

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.sweep.report import trainings
from aimbot_lab.sweep.trial import measure, seeds_of, training_of, value_of
from aimbot_lab.sweep.trial_runs import Stage, TrialScore, WorkerContext
from aimbot_lab.tracking.data_folder import DataFolder


@dataclass(frozen=True)
class Rerun:
    """A trial's value, and its value when run again."""

    number: int
    before: float
    now: float
    trainings_before: Sequence[TrialScore]
    trainings_now: Sequence[TrialScore]

    @property
    def is_same(self) -> bool:
        """Whether the value and all that was learned are the same to the last bit."""
        learned = [
            [(score.value, score.state_sha256) for score in scores]
            for scores in (self.trainings_before, self.trainings_now)
        ]
        return self.before == self.now and learned[0] == learned[1]


class _Monitor:
    """The watch over the trainings of a trial, one after the other."""

    def __init__(
        self, on_share: Callable[[float], None], should_stop: Callable[[], bool], count: int
    ) -> None:
        self.should_stop, self._on_share, self._count = should_stop, on_share, count
        self.index = 0  # of the training that goes on

    def progress(self, _stage: Stage, _number: int, share: float) -> None:
        """Pass it on."""
        self._on_share(share)

    def at(self, step: int, steps: int, _value: float | None) -> None:
        """Tell how far all are."""
        self._on_share(min((self.index + step / max(steps, 1)) / self._count, 1.0))


def rerun(
    record: SweepRecord,
    number: int,
    *,
    data_folder: DataFolder,
    tracking_uri: str | None,
    on_share: Callable[[float], None],
    should_stop: Callable[[], bool],
) -> Rerun | None:
    """A trial trained and scored again, tracked as runs of their own; None where stopped.

    Raises ConfigurationError where there is no such trial or it has no value.
    """
    trials = record.study.get_trials(deepcopy=False)
    if not 0 <= number < len(trials):
        last = f"its trials are 0 to {len(trials) - 1}" if trials else "it has no trials yet"
        raise ConfigurationError(f"sweep {record.name!r} has no trial {number}; {last}")
    if trials[number].state != TrialState.COMPLETE:
        raise ConfigurationError(
            f"trial {number} of sweep {record.name!r} has no value to compare with: it is "
            f"{trials[number].state.name.lower()}"
        )
    trial = trials[number]
    seeds = seeds_of(record.config, "search")
    monitor = _Monitor(on_share, should_stop, len(seeds))
    context = WorkerContext(record, data_folder, tracking_uri, monitor)
    scores = []
    for index, seed in enumerate(seeds):
        monitor.index = index
        trial_training = training_of(context, "search", params=trial.params, seed=seed)
        tags = {"lab.sweep": record.name, "lab.sweep_rerun": str(number)}
        name = f"{record.name} {number} rerun seed {index}"
        score = measure(replace(trial_training, name=name, tags=tags), monitor)
        if score is None:
            return None
        scores.append(score)
    before = [TrialScore(**kept) for kept in trainings(trial)]
    return Rerun(number, float(trial.value or 0.0), value_of(scores), before, scores)
