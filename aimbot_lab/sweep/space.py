"""Values to search: the space that a sweep's dimensions span, and what a trial is given of it.

That is a pure function of the sweep, the trial's number and earlier results. Optuna's samplers draw
from a stream of random numbers and look at whatever has ended by now. Here each trial has a sampler
of its own, seeded by the trial's number, that sees a study made for it: the results it is entitled
to, and of the trials that may still run only their values. So a sweep repeats whatever the timing,
and goes on after a crash without the sampler's state.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from aimbot_lab.experiment.config.document import LoadedCurriculum, with_overrides
from aimbot_lab.experiment.config.yaml_reader import Diagnostic
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.sweep.settings import Choices, Dimension, FloatRange, IntRange, SweepFile
from aimbot_lab.worlds.registry import type_of

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
    if outside_space(search, base):
        return None
    own = asdict(base.config)
    return {key: _as_number(one, _kept(one, _at(own, key))) for key, one in search.items()}


def outside_space(search: Mapping[str, Dimension], base: LoadedCurriculum) -> list[str]:
    """The keys whose value in the curriculum lies outside of the space, each with that value."""
    values = asdict(base.config)
    own = {key: _kept(one, _at(values, key)) for key, one in search.items()}
    outside = [key for key, one in search.items() if not _holds(_distribution(one), own[key])]
    return [f"{key} ({'not set' if own[key] is None else own[key]})" for key in outside]


def scored_with(search: Mapping[str, Dimension], base: LoadedCurriculum) -> list[str]:
    """The keys searched that a trained agent keeps in the episodes that score it.

    They say what it sees and does; those of an environment of a user's own may set rewards, too.
    """
    kept = {f"env.{key}" for key in type_of(base.config.env).shape_keys}
    return [key for key in search if ".".join(key.split(".")[:2]) in kept]


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
    if any(_is_within(key, never) for never in NEVER_SEARCHED):
        return "can't be searched"
    if _is_within(key, "env.presets"):
        return "can't be searched: a sweep keeps one set of target blocks for all its trials"
    outer = next((other for other in search if other != key and _is_within(key, other)), None)
    return None if outer is None else f"lies within {outer}, which is searched too"


def _is_within(key: str, outer: str) -> bool:
    """Whether `key` is `outer` or a part of it; `lessons[0]` is `lessons.0`."""
    inner, around = (one.replace("[", ".").replace("]", "") for one in (key, outer))
    return f"{inner}.".startswith(f"{around}.")


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
        # Both ends may divide a rollout, as a batch must, and hardly a number between them.
        steps = (dimension.high - dimension.low) // dimension.step
        return [*ends, ((), dimension.low + (3 * steps + 7) // 8 * dimension.step)]
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


def suggest(sweep: SweepFile, trials: Sequence[FrozenTrial]) -> dict[str, Any]:
    """The values of trial number `len(trials)`, from all `trials` before it in their order.

    Those it may learn from must have ended (see `visible`).
    """
    number = len(trials)
    study = view(sweep, trials, number, sampler=_sampler(sweep, number))
    return study.ask(distributions(sweep.search)).params


def _sampler(sweep: SweepFile, number: int) -> BaseSampler:
    seed, startup = derive_seed(sweep.seed, "suggestion", number), sweep.startup_trials
    if sweep.sampler == "random":
        return RandomSampler(seed=seed)
    if sweep.sampler == "gp":
        return GPSampler(seed=seed, n_startup_trials=startup, deterministic_objective=False)
    return TPESampler(seed=seed, n_startup_trials=startup)


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
