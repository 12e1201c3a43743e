"""What a trial is given: a pure function of the sweep, the trial's number and earlier results.

Optuna's samplers draw from a stream of random numbers and look at whatever has ended by now.
Here each trial has a sampler of its own, seeded by the trial's number, that sees a study made for
it: the results it is entitled to, and of the trials that may still run only their values. So a
sweep repeats whatever the timing, and goes on after a crash without the sampler's state.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import optuna
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.sweep.search.space import distributions
from aimbot_lab.sweep.settings import SweepFile


def _tpe(seed: int, startup: int) -> BaseSampler:
    return TPESampler(seed=seed, n_startup_trials=startup)


def _random(seed: int, _startup: int) -> BaseSampler:
    return RandomSampler(seed=seed)


def _gp(seed: int, startup: int) -> BaseSampler:
    return GPSampler(seed=seed, n_startup_trials=startup, deterministic_objective=False)


SAMPLERS: Mapping[str, Callable[[int, int], BaseSampler]] = MappingProxyType(
    {"tpe": _tpe, "random": _random, "gp": _gp}
)


def suggest(sweep: SweepFile, trials: Sequence[FrozenTrial]) -> dict[str, Any]:
    """The values of trial number `len(trials)`, from all `trials` before it in their order.

    Those it may learn from must have ended (see `visible`).
    """
    number = len(trials)
    sampler = SAMPLERS[sweep.sampler](
        derive_seed(sweep.seed, "suggestion", number), sweep.startup_trials
    )
    study = view(sweep, trials, number, sampler=sampler)
    return study.ask(distributions(sweep.search)).params


def visible(sweep: SweepFile, number: int) -> int:
    """How many of the first trials trial `number` may learn from."""
    return max(0, number - sweep.parallel + 1)


def view(
    sweep: SweepFile,
    trials: Sequence[FrozenTrial],
    number: int,
    *,
    sampler: BaseSampler | None = None,
) -> optuna.Study:
    """A study in memory with the trials before `number`, as trial `number` may see them."""
    study = optuna.create_study(
        direction="maximize" if sweep.maximizes else "minimize",
        study_name=sweep.name,  # Hyperband's brackets depend on it
        sampler=sampler,
    )
    known = visible(sweep, number)
    study.add_trials(_as_seen(trial) for trial in trials[:known])
    study.add_trials(
        create_trial(
            state=TrialState.RUNNING, params=trial.params, distributions=trial.distributions
        )
        for trial in trials[known:number]
    )
    return study


def _as_seen(trial: FrozenTrial) -> FrozenTrial:
    """`trial` without what a sampler or pruner must not depend on, such as its times.

    One that was given up between two trainings counts with its mean so far, as Optuna advises
    for the Wilcoxon pruner.
    """
    mean = trial.user_attrs.get("mean_so_far")
    pruned = trial.state == TrialState.PRUNED and mean is not None
    return create_trial(
        state=TrialState.COMPLETE if pruned else trial.state,
        value=mean if pruned else trial.value,
        params=trial.params,
        distributions=trial.distributions,
        intermediate_values=trial.intermediate_values,
    )
