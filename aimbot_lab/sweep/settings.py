"""A sweep file: what is searched, by which measure, and with how much work."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Annotated, Any, Literal

from annotated_types import MaxLen, MinLen
from pydantic import AfterValidator, Field, WithJsonSchema

from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Gt, Int, Le, dataclass
from aimbot_lab.tracking.settings import TrackingSettings

TRIAL_VALUE = "trial/value"  # what a trial is worth
TRAINING_VALUE = "training/value"  # what each of its trainings is worth, by their index
BEST_SO_FAR = "best/so_far"  # by trial
BEST_SEARCHED = "best/search"
BEST_CONFIRMED = "best/confirmed"

NAME_FORM = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$"
Key = Annotated[str, MinLen(1)]
LOG_NEEDS = "must be greater than 0 where log is true"


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A measure that `objective.measure` names."""

    name: str
    pruners: frozenset[str]  # which can prune its trials, besides none
    maximizes: bool = True  # whether a greater value is better
    trains: bool = True  # whether agents are trained; if not, scores are made up
    counts_steps: bool = False  # until the last lesson passes


WIN_RATE = Objective(name="win_rate", pruners=frozenset({"wilcoxon", "halving"}))
STEPS_TO_GOAL = Objective(
    name="steps_to_goal", pruners=frozenset({"halving", "race"}), maximizes=False, counts_steps=True
)
RETURN = Objective(name="return", pruners=frozenset({"wilcoxon", "halving"}))
PLANTED = Objective(name="planted", pruners=frozenset({"wilcoxon"}), trains=False)
OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {one.name: one for one in (WIN_RATE, RETURN, STEPS_TO_GOAL, PLANTED)}
)


def pruner_faults(measure: str, pruner: str) -> Iterator[str]:
    """Why that pruner can't prune trials of that measure."""
    if pruner == "none" or pruner in OBJECTIVES[measure].pruners:
        return
    suited = [one.name for one in OBJECTIVES.values() if pruner in one.pruners]
    if len(suited) == 1:
        yield f"must not be {pruner} unless objective.measure is {suited[0]}"
    else:
        yield f"must not be {pruner} where objective.measure is {measure}"


def _flat(value: Any) -> Any:
    """A value of a key; lists of numbers are values, for example the layers of a network."""
    items = value if isinstance(value, list | tuple) else [value]
    if not all(item is None or isinstance(item, bool | int | float | str) for item in items):
        raise ValueError("must be a number, a text, true, false, null, or a list of these")
    return list(value) if isinstance(value, tuple) else value


def _plain(name: str) -> str:
    """A name that may be a folder's and a word of a command line."""
    if re.fullmatch(NAME_FORM, name) is None:
        raise ValueError(
            "must begin with a letter or digit and have at most 80 letters, digits, _, . and - "
            f"(got {name!r})"
        )
    return name


Value = Annotated[Any, AfterValidator(_flat)]
SweepName = Annotated[
    str, AfterValidator(_plain), WithJsonSchema({"type": "string", "pattern": NAME_FORM})
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FloatRange:
    """Numbers from low to high."""

    type: Literal["float"]
    """A number."""
    low: Float
    """Lowest value."""
    high: Float
    """Highest value."""
    log: Bool = False
    """Whether the scale is logarithmic: 0.1 to 1 counts as much as 1 to 10."""

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)
        if self.log and self.low <= 0:
            raise ValueError(f"low {LOG_NEEDS} (got {self.low:g})")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class IntRange:
    """Whole numbers from low to high."""

    type: Literal["int"]
    """A whole number."""
    low: Int
    """Lowest value."""
    high: Int
    """Highest value."""
    log: Bool = False
    """Whether the scale is logarithmic."""
    step: Annotated[Int, Ge(1)] = 1
    """Distance between two values."""

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)
        if self.log and self.low < 1:
            raise ValueError(f"low {LOG_NEEDS} (got {self.low})")
        if self.log and self.step != 1:
            raise ValueError("step must be 1 where log is true")
        if (self.high - self.low) % self.step:
            raise ValueError(f"step must divide high - low = {self.high - self.low}")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Choices:
    """One of several values."""

    type: Literal["categorical"]
    """One of the choices."""
    choices: Annotated[tuple[Value, ...], MinLen(2), MaxLen(100)]
    """The values."""

    def __post_init__(self) -> None:
        # Optuna finds a choice by ==, to which 1, 1.0 and true are the same.
        found = list(self.choices)
        if any(choice in found[:place] for place, choice in enumerate(found)):
            raise ValueError("choices must differ from each other (1, 1.0 and true do not)")


Dimension = Annotated[FloatRange | IntRange | Choices, Field(discriminator="type")]


def _check_range(low: float, high: float) -> None:
    if not low < high:
        raise ValueError(f"high must be greater than low, {low:g} (got {high:g})")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ObjectiveSettings:
    """How a trial is scored. Searched reward weights are never part of it."""

    measure: Literal["win_rate", "return", "steps_to_goal", "planted"] = "win_rate"
    """win_rate: share of evaluation episodes won, the same for all trials. return: their mean
    return, by the rewards of the curriculum itself. steps_to_goal: steps until the last lesson is
    passed; a training that runs out of steps first counts with train.total_steps, as a lower bound.
    planted: a synthetic task with a known optimum, which trains nothing, to try samplers and
    storages."""
    episodes: Annotated[Int, Ge(1), Le(65536)] = 200
    """win_rate, return and planted: evaluation episodes of each target and difficulty."""
    optimum: Mapping[str, Float] = field(default_factory=dict)
    """planted: the best value of each number searched."""
    seconds: Annotated[Float, Ge(0), Le(3600)] = 0.0
    """planted: how long a simulated training takes."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PrunerSettings:
    """Which trials are pruned."""

    kind: Literal["none", "wilcoxon", "halving", "race"] = "none"
    """wilcoxon: after a training, if the trial is worse than the best one on the same seeds,
    targets and difficulties. halving: during a training, if it lags behind others after the same
    steps, by lessons passed, then by win rate or return in the present one (asynchronous successive
    halving, as in Hyperband). race: at any moment, if the trial exceeds the best one's steps to the
    goal by a margin."""
    p_threshold: Annotated[Float, Gt(0), Le(0.5)] = 0.1
    """wilcoxon: the p value below which a trial counts as worse."""
    first_steps: Annotated[Int, Ge(1)] = 100_000
    """halving: steps after which a trial may first be pruned; then after reduction times as many,
    and so on."""
    reduction: Annotated[Int, Ge(2), Le(10)] = 3
    """halving: one in this many continues."""
    margin: Annotated[Float, Ge(0), Le(10)] = 0.5
    """race: a trial is pruned once the mean steps of its trainings so far, including the running
    one, exceed the best trial's mean by this share."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ConfirmSettings:
    """Scoring the best few again on seeds that no trial has used, because the best of many is
    partly lucky."""

    best: Annotated[Int, Ge(0), Le(50)] = 3
    """How many of the best trials; 0: none."""
    seeds: Annotated[Int, Ge(1), Le(100)] = 3
    """Training runs of each, with fresh seeds, the same for all."""
    episodes: Annotated[Int, Ge(1), Le(65536)] = 500
    """Fresh evaluation episodes of each target and difficulty."""
    also: Annotated[Mapping[SweepName, Mapping[Key, Value]], MaxLen(20)] = field(
        default_factory=dict
    )
    """Values of your own to confirm beside the best, by name: keys of search with their values,
    others as in the curriculum. They are compared, but never become best.yaml."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SweepFile:
    """A sweep: many training runs of one curriculum with different values."""

    name: SweepName
    """Name of the sweep: letters, digits, `_`, `.` and `-`."""
    seed: Annotated[Int, Ge(0), Le(2**32 - 1)] = 1
    """Seed of everything random; the same seed gives the same sweep."""
    base: Key
    """The curriculum that every trial trains, as a path from this file's folder."""
    overrides: Mapping[Key, Value] = field(default_factory=dict)
    """Values of the curriculum that differ in all trials, by their keys."""
    search: Annotated[Mapping[Key, Dimension], MinLen(1)]
    """What is searched: keys of the curriculum, each with its range or choices."""
    objective: ObjectiveSettings = ObjectiveSettings()
    """How a trial is scored."""
    trials: Annotated[Int, Ge(1), Le(100_000)] = 24
    """How many trials there are; the first has the values of the curriculum itself."""
    seeds: Annotated[Int, Ge(1), Le(100)] = 2
    """Training runs of each trial, on the same seeds for all trials; its value is their mean."""
    sampler: Literal["tpe", "random", "gp"] = "tpe"
    """How values are chosen: tpe and gp learn from earlier trials, random does not."""
    startup_trials: Annotated[Int, Ge(1), Le(10_000)] = 10
    """tpe and gp: how many trials are drawn at random first."""
    parallel: Annotated[Int, Ge(1), Le(10_000)] = 2
    """How many trials may run at once. Trial n sees only results up to trial n - parallel, so that
    neither the number of workers nor their speed changes the sweep."""
    workers: Annotated[Int, Ge(1), Le(1024)] = 2
    """Processes that train, one core each."""
    pruner: PrunerSettings = PrunerSettings()
    """Which trials are pruned."""
    confirm: ConfirmSettings = ConfirmSettings()
    """Scoring the best few again."""
    lease: Annotated[Float, Ge(1), Le(86_400)] = 60.0
    """Seconds of silence after which a worker on another machine counts as dead; one on the same
    machine is noticed at once."""
    tracking: TrackingSettings = field(default_factory=TrackingSettings)
    """Where the runs are tracked."""

    @property
    def maximizes(self) -> bool:
        """Whether a greater value is better."""
        return self.measure.maximizes

    @property
    def measure(self) -> Objective:
        """What is optimised."""
        return OBJECTIVES[self.objective.measure]


def sweep_diagnostics(sweep: SweepFile) -> Iterator[tuple[tuple[str, ...], str]]:
    """What the sections say against each other: the key, and what is wrong there."""
    if sweep.workers > sweep.parallel:
        yield ("workers",), f"must be at most parallel, {sweep.parallel} (got {sweep.workers})"
    yield from _optimum_diagnostics(sweep)
    for name, values in sweep.confirm.also.items():
        for key in values:
            if key not in sweep.search:
                yield ("confirm", "also", name, key), "must be a key of search"
    for what in pruner_faults(sweep.objective.measure, sweep.pruner.kind):
        yield ("pruner", "kind"), what


def _optimum_diagnostics(sweep: SweepFile) -> Iterator[tuple[tuple[str, ...], str]]:
    path, optimum = ("objective", "optimum"), sweep.objective.optimum
    if sweep.measure.trains:
        if optimum:
            yield path, "must be left out unless objective.measure is planted"
        return
    for key, best in optimum.items():
        dimension = sweep.search.get(key)
        if dimension is None:
            yield (*path, key), "must be a key of search"
        elif not isinstance(dimension, Choices) and not dimension.low <= best <= dimension.high:
            span = f"{dimension.low:g} to {dimension.high:g}"
            yield (*path, key), f"must lie in the range that is searched, {span} (got {best:g})"
    for key, dimension in sweep.search.items():
        if not isinstance(dimension, Choices) and key not in optimum:
            yield path, f"must hold the best value of {key}"
