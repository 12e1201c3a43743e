"""What a search may change: values, schedules over trials, and how one is drawn.

Values to search: the space that a sweep's dimensions span, and what a trial is given of it.

That is a pure function of the sweep, the trial's number and earlier results. Optuna's samplers draw
from a stream of random numbers and look at whatever has ended by now. Here each trial has a sampler
of its own, seeded by the trial's number, that sees a study made for it: the results it is entitled
to, and of the trials that may still run only their values. So a sweep repeats whatever the timing,
and goes on after a crash without the sampler's state.

Which trials a sweep consists of, the search, then the confirmation of the best; which are given
up early, a pure function of a trial's reports and earlier trials'.
"""

import json
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.pruners import WilcoxonPruner
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from aimbot_lab.experiment.config.document import LoadedCurriculum, with_overrides
from aimbot_lab.experiment.config.yaml_reader import Diagnostic
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.sweep.settings import Choices, Dimension, FloatRange, IntRange, SweepFile
from aimbot_lab.sweep.trial_queue import SCORE, NewTrial

NEVER_SEARCHED = ("name", "seed", "tracking", "env.threads", "train.torch_threads")
Params = Mapping[str, Any]  # the values of a trial by their keys, as Optuna keeps them


def distributions(search: Mapping[str, Dimension]) -> dict[str, BaseDistribution]:
    """The space as Optuna knows it."""
    return {key: _distribution(dimension) for key, dimension in search.items()}


def override_text(key: str, value: object) -> str:
    """KEY=VALUE as `--set` takes it, which reads back to exactly `value`."""
    return f"{key}={json.dumps(value)}"


def overrides(params: Params, search: Mapping[str, Dimension]) -> list[str]:
    """A trial's values as KEY=VALUE each, in the order of the keys of `search`."""
    return [override_text(key, _value(search[key], params[key])) for key in search]


def default_params(
    search: Mapping[str, Dimension], base: LoadedCurriculum
) -> dict[str, Any] | None:
    """The curriculum's own values, None where any of them lies outside of the space."""
    found = {}
    for key, dimension in search.items():
        value = _kept(dimension, _at(asdict(base.config), key))
        distribution = _distribution(dimension)
        if not _holds(distribution, value):
            return None
        found[key] = _as_number(dimension, value)
    return found


def search_diagnostics(
    search: Mapping[str, Dimension], base: LoadedCurriculum
) -> Iterator[Diagnostic]:
    """What of the space no curriculum can be given: unknown keys and values out of bounds."""
    for key, dimension in search.items():
        what = _key_refusal(key, search)
        if what is not None:
            yield Diagnostic(("search", key), what, about_key=True)
            continue
        for place, value in _probes(dimension):
            fault = _refusal(override_text(key, value), base)
            if fault is not None:
                unknown = "unknown" in fault
                path = ("search", key) if unknown else ("search", key, *place)
                yield Diagnostic(path, fault, about_key=unknown)
                break


def also_params(sweep: SweepFile, base: LoadedCurriculum) -> dict[str, dict[str, Any]]:
    """The values of `confirm.also` by their names, filled up with the curriculum's own."""
    own = {key: _at(asdict(base.config), key) for key in sweep.search}
    return {
        name: {
            key: _as_number(dimension, _kept(dimension, values.get(key, own[key])))
            for key, dimension in sweep.search.items()
        }
        for name, values in sweep.confirm.also.items()
    }


def also_diagnostics(sweep: SweepFile, base: LoadedCurriculum) -> Iterator[Diagnostic]:
    """Values of `confirm.also` that lie outside of what is searched."""
    space = distributions(sweep.search)
    for name, values in also_params(sweep, base).items():
        for key, value in values.items():
            if not _holds(space[key], value):
                given = key in sweep.confirm.also[name]
                path = ("confirm", "also", name, *([key] if given else []))
                whose = "" if given else f" {key} is left out, and the curriculum's own"
                yield Diagnostic(
                    path, f"must lie within search.{key};{whose or ' this'} is {value!r}"
                )


def _as_number(dimension: Dimension, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if isinstance(dimension, FloatRange) and is_number else value


def _key_refusal(key: str, search: Mapping[str, Dimension]) -> str | None:
    """What is wrong with `key` as such, None where nothing is."""
    if re.fullmatch(r"[^\s=]+", key) is None:
        return "must be a key such as train.learning_rate or lessons.0.name"
    if key.startswith(NEVER_SEARCHED):
        return "can't be searched"
    if key.startswith("env.presets"):
        return "can't be searched: a sweep keeps one set of target blocks for all its trials"
    outer = next((other for other in search if key.startswith(f"{other}.")), None)
    return None if outer is None else f"lies within {outer}, which is searched too"


def _refusal(override: str, base: LoadedCurriculum) -> str | None:
    """Why the curriculum refuses `override`, None where it does not."""
    try:
        with_overrides(base, [override])
    except ConfigurationError as error:
        what = error.faults[0].removeprefix(f"--set {override}: ")
        return what.removeprefix(f"{override.partition('=')[0]}: ")
    return None


def _probes(dimension: Dimension) -> list[tuple[tuple[str | int, ...], Any]]:
    """Values at the ends of the space, each with the place where the file gives it."""
    if isinstance(dimension, Choices):
        return [(("choices", place), value) for place, value in enumerate(dimension.choices)]
    ends: list[tuple[tuple[str | int, ...], Any]] = [
        (("low",), dimension.low),
        (("high",), dimension.high),
    ]
    if isinstance(dimension, IntRange):
        return ends
    # Both ends may be whole numbers, which a key for whole numbers takes.
    return [*ends, (("type",), dimension.low + (dimension.high - dimension.low) / math.e)]


def _distribution(dimension: Dimension) -> BaseDistribution:
    if isinstance(dimension, FloatRange):
        return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
    if isinstance(dimension, IntRange):
        low, high = dimension.low, dimension.high
        return IntDistribution(low, high, log=dimension.log, step=dimension.step)
    return CategoricalDistribution([_kept(dimension, choice) for choice in dimension.choices])


def _kept(dimension: Dimension, value: Any) -> Any:
    """`value` as Optuna can keep it: a list as its text."""
    several = isinstance(dimension, Choices) and isinstance(value, list | tuple)
    return json.dumps(list(value)) if several else value


def _value(dimension: Dimension, kept: Any) -> Any:
    """What `_kept` made from a value, as the value."""
    if isinstance(dimension, IntRange):
        return int(kept)
    if not isinstance(dimension, Choices):
        return float(kept)
    return next(choice for choice in dimension.choices if _kept(dimension, choice) == kept)


def _holds(distribution: BaseDistribution, value: Any) -> bool:
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except (ValueError, TypeError):
        return False


def _at(data: Any, key: str) -> Any:
    """The value at a dotted key of plain data, None if missing."""
    for part in key.split("."):
        if isinstance(data, list | tuple) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        elif isinstance(data, dict) and part in data:
            data = data[part]
        else:
            return None
    return data


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


def should_prune(
    sweep: SweepFile, trials: Sequence[FrozenTrial], number: int, params: Params, reports: Reports
) -> bool:
    """Whether trial `number` of `trials`, with these reports so far, is to be given up.

    Only the trials that its values were chosen from count.
    """
    if number == 0:
        return False  # what everything is compared with
    return _RULES[sweep.pruner.kind](sweep, trials, number, params, reports)


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


def _never(
    _sweep: SweepFile, _trials: Sequence[FrozenTrial], _number: int, _params: Params, _own: Reports
) -> bool:
    return False


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


def _halving(
    sweep: SweepFile, trials: Sequence[FrozenTrial], number: int, _params: Params, own: Reports
) -> bool:
    """Whether it is not among the best 1/reduction of the trials that got as far."""
    rung = max(own)
    known = trials[: visible(sweep, number)]
    others = [t.intermediate_values[rung] for t in known if rung in t.intermediate_values]
    if len(others) + 1 < sweep.pruner.reduction:
        return False
    go_on = (len(others) + 1) // sweep.pruner.reduction
    return sum(other > own[rung] for other in others) >= go_on


_RULES: Mapping[str, Callable[[SweepFile, Sequence[FrozenTrial], int, Params, Reports], bool]] = (
    MappingProxyType({"none": _never, "race": _never, "wilcoxon": _wilcoxon, "halving": _halving})
)
