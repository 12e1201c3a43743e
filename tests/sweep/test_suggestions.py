"""What a trial is given depends on earlier results alone, and finds a planted optimum."""

import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial
from sweep_files import PLANTED, Watch, loaded

from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.sweep.document import LoadedSweep
from aimbot_lab.sweep.schedules import SearchSchedule, should_prune
from aimbot_lab.sweep.settings import PrunerSettings
from aimbot_lab.sweep.space import distributions, suggest, view, visible
from aimbot_lab.sweep.trial import measure, planted_rate
from aimbot_lab.sweep.trial_runs import TrialTraining
from aimbot_lab.tracking.data_folder import DataFolder

KEY = "env.rewards.spin_penalty"
DEFAULTS = {KEY: 1.0, "env.rewards.facing": 1.0, "env.rewards.in_area": 5.0}


@pytest.fixture(scope="module")
def planted() -> LoadedSweep:
    return loaded(PLANTED)


def worth(sweep: LoadedSweep, params: dict[str, float], seed: int) -> float:
    task = TrialTraining(
        sweep=sweep.config,
        base=sweep.base,
        params=params,
        seed=seed,
        evaluation_seed=1,
        episodes=sweep.config.objective.episodes,
        name="",
        tags={},
        data_folder=DataFolder(Path("/nowhere")),
    )
    score = measure(task, Watch())
    assert score is not None
    return score.value


def trial(sweep: LoadedSweep, params: dict[str, float], value: float | None) -> FrozenTrial:
    state = TrialState.RUNNING if value is None else TrialState.COMPLETE
    space = distributions(sweep.config.search)
    return create_trial(state=state, params=params, distributions=space, value=value)


def searched(sweep: LoadedSweep, count: int) -> list[FrozenTrial]:
    """The trials of a sweep whose workers are never late."""
    plan = SearchSchedule(sweep.config, sweep.base, count)
    trials: list[FrozenTrial] = []
    while (new := plan.due(trials)) is not None:
        params = dict(new.params)
        trials.append(trial(sweep, params, worth(sweep, params, derive_seed(3, len(trials)))))
    return trials


@pytest.mark.parametrize("sampler", ["tpe", "random", "gp"])
def test_the_same_results_give_the_same_suggestion(planted: LoadedSweep, sampler: str) -> None:
    sweep = replace(planted, config=replace(planted.config, sampler=sampler))
    trials = searched(sweep, 6)
    assert trials[0].params == DEFAULTS
    assert suggest(sweep.config, trials) == suggest(sweep.config, trials)
    assert [one.params for one in searched(sweep, 6)] == [one.params for one in trials]


def test_a_suggestion_heeds_results_and_what_still_runs_but_no_result_that_came_early(
    planted: LoadedSweep,
) -> None:
    trials = searched(planted, 7)
    known = visible(planted.config, len(trials))
    assert known == 7 - planted.config.parallel + 1
    late = [trial(planted, one.params, None) for one in trials[known:]]
    next_best = suggest(planted.config, trials)
    assert suggest(planted.config, [*trials[:known], *late]) == next_best
    other = [trial(planted, one.params, 1.0 - (one.value or 0.0)) for one in trials]
    assert suggest(planted.config, other) != next_best
    there = [trial(planted, next_best, None) for _ in trials[-2:]]
    assert suggest(planted.config, [*trials[:5], *there]) != next_best


def test_a_trial_is_due_once_all_it_learns_from_has_ended(planted: LoadedSweep) -> None:
    plan = SearchSchedule(planted.config, planted.base, 100)
    trials = searched(planted, 6)
    running = [trial(planted, one.params, None) for one in trials]
    assert plan.is_due([*trials[:4], *running[4:]])  # parallel: 3
    assert not plan.is_due([*trials[:3], running[3], *trials[4:]])


def test_the_planted_rate_is_greatest_at_the_optimum(planted: LoadedSweep) -> None:
    best = dict(planted.config.objective.optimum)
    assert planted_rate(planted.config, best) == 0.95
    for key, value in best.items():
        for other in (value * 0.5, value * 2.0):
            assert planted_rate(planted.config, {**best, key: other}) < 0.95


def test_a_sweep_finds_a_planted_optimum_better_than_chance(planted: LoadedSweep) -> None:
    """True win rates at the best trial of 30, over six sweeps of each sampler."""

    def found(sampler: str, seed: int) -> float:
        config = replace(planted.config, sampler=sampler, seed=seed, startup_trials=10)
        trials = searched(replace(planted, config=config), 25)
        best = max(trials, key=lambda one: one.value or 0.0)
        return planted_rate(config, best.params)

    by_tpe, by_chance = (
        [found(sampler, seed) for seed in range(6)] for sampler in ("tpe", "random")
    )
    assert statistics.fmean(by_tpe) > statistics.fmean(by_chance) + 0.1
    assert sum(a > b for a, b in zip(by_tpe, by_chance, strict=True)) >= 5


@pytest.mark.parametrize(
    ("own", "hopeless"), [([0.2] * 6, True), ([0.9] * 6, False), ([0.49, 0.52] * 3, False)]
)
def test_wilcoxon_gives_up_what_is_worse_on_the_same_seeds(
    planted: LoadedSweep, own: list[float], hopeless: bool
) -> None:
    config = replace(planted.config, pruner=PrunerSettings(kind="wilcoxon"), parallel=1)
    best = trial(planted, DEFAULTS, 0.5)
    best.intermediate_values = {step: 0.5 + 0.01 * step for step in range(-3, 3)}
    reports = dict(zip(range(-3, 3), own, strict=True))
    assert should_prune(config, [best], 1, best.params, reports) is hopeless


def test_halving_lets_the_best_third_go_on(planted: LoadedSweep) -> None:
    pruner = PrunerSettings(kind="halving", first_steps=100, reduction=3)
    config = replace(planted.config, pruner=pruner, parallel=1)
    others = []
    for rate in (0.1, 0.2, 0.3, 0.4, 0.5):
        one = trial(planted, DEFAULTS, rate)
        one.intermediate_values = {100: rate}
        others.append(one)
    assert not should_prune(config, others, 5, others[0].params, {100: 0.45})
    assert should_prune(config, others, 5, others[0].params, {100: 0.35})
    assert not should_prune(config, others[:1], 1, others[0].params, {100: 0.0})  # too few to tell


def test_what_was_given_up_counts_with_its_mean_so_far_and_what_runs_is_known(
    planted: LoadedSweep,
) -> None:
    given_up = trial(planted, DEFAULTS, 0.5)
    given_up.state = TrialState.PRUNED
    given_up.values = None
    given_up.user_attrs = {"mean_so_far": 0.25}
    config = replace(planted.config, parallel=2)
    seen = view(config, [given_up, trial(planted, DEFAULTS, None)], 2).get_trials()
    assert [(one.state, one.value) for one in seen] == [
        (TrialState.COMPLETE, 0.25),
        (TrialState.RUNNING, None),
    ]
