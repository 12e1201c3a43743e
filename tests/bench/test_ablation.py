"""What each switch brings: which trainings are compared, and what they come to."""

from dataclasses import replace
from math import exp, log

import pytest

from aimbot_lab.bench import ABLATION_TASKS, ablation
from aimbot_lab.bench.ablation import (
    ALONE,
    EVERYTHING,
    LEFT_OUT,
    AblationPlan,
    Attempt,
    attempts,
    contrast,
    spread,
    summaries,
)
from aimbot_lab.bench.turns import student_interval
from aimbot_lab.foundation.episodes import wilson
from aimbot_lab.training.networks.network_parts import part_faults
from aimbot_lab.training.networks.settings import PARTS
from aimbot_lab.training.settings import TrainingPlan, TrainSettings

TINY = AblationPlan(task="goto", threshold=0.9, most_steps=512, seeds=2, num_envs=16, n_steps=16)
FEW = replace(TINY, variants=("bins", "masks"))


def test_variants_differ_in_their_switch_alone() -> None:
    plain = AblationPlan().training((), 1)
    assert next(iter(ALONE.values())) == ()
    for name, switches in {**ALONE, **LEFT_OUT}.items():
        other = AblationPlan().training(switches, 1)
        assert differing(plain.train, other.train) == keys(switches), name
        assert (other.seed, other.env, other.lessons) == (plain.seed, plain.env, plain.lessons)
    alone = [switches for switches in ALONE.values() if len(switches) == 1]
    assert set().union(*map(keys, alone)) == keys(EVERYTHING)
    assert plain.env.observation.units  # seen by all, so that agents alone differ


def test_each_part_of_a_network_is_a_switch_or_left_aside_for_a_reason() -> None:
    left_aside = {"scalars", "picture"}  # more layers before the layers; the tasks show no picture
    compared = {key.removeprefix("network.") for key in keys(EVERYTHING) if "network." in key}
    assert compared | left_aside == {*PARTS}


def keys(switches: tuple[str, ...]) -> set[str]:
    return {one.partition("=")[0] for one in switches}


def differing(one: TrainSettings, other: TrainSettings) -> set[str]:
    """The keys in which two settings differ, those of the network behind "network."."""
    keys = {key for key, value in vars(one).items() if getattr(other, key) != value}
    inner = {
        f"network.{key}"
        for key, value in vars(one.network).items()
        if getattr(other.network, key) != value
    }
    return keys - {"network"} | inner


def test_leaving_out_switches_off_one_thing_of_everything() -> None:
    whole = AblationPlan(leave_one_out=True)
    assert next(iter(whole.switches)) == "everything"
    off = [keys(EVERYTHING) - keys(switches) for switches in LEFT_OUT.values()]
    assert set().union(*off) == keys(EVERYTHING)
    assert all(len(missing) <= 1 for missing in off)
    assert set(EVERYTHING) ^ set(LEFT_OUT["target linear"]) == {"target=attention", "target=linear"}


def test_recall_is_the_shipped_curriculum_with_and_without_a_memory() -> None:
    plan = AblationPlan(task="recall", most_steps=1000, num_envs=32)
    assert list(plan.switches) == ["memory", "bins"]
    with_it, without = (plan.training(switches, 1) for switches in plan.switches.values())
    assert without.train.network.memory is None
    assert with_it.train.network.memory.sequence_length == 64
    assert replace(with_it.train.network, memory=None) == without.train.network
    for one in (without, with_it):
        assert (one.env.recall_seconds, one.env.shipped_presets) == (1.0, False)
        assert one.lessons[0].completion_criteria.threshold == 0.8
        assert one.train.total_steps == 1000
    easier = AblationPlan(task="recall", threshold=0.5).training((), 1).lessons[0]
    assert easier.difficulty == {"goto": (1.0, 0.0, 0.0, 0.0, 0.0)}
    assert easier.completion_criteria.threshold == 0.5


def test_every_target_and_every_task_with_a_name_of_its_own_is_learned() -> None:
    for name in ("attack", "free", "goto", *ABLATION_TASKS):
        (lesson,) = AblationPlan(task=name).training((), 1).lessons
        assert name in ABLATION_TASKS or lesson.targets == {name: 1.0}


def test_without_a_memory_recall_is_trained_as_long_as_with_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def attempt(plan: TrainingPlan, variant: str) -> Attempt:
        steps = 7000 * plan.seed if variant == "memory" else plan.train.total_steps
        return Attempt(variant, plan.seed, reached=True, steps=steps, seconds=1.0)

    monkeypatch.setattr(ablation, "attempt", attempt)
    done = list(attempts(AblationPlan(task="recall", seeds=2), lambda _: None))
    assert [(one.variant, one.seed, one.steps) for one in done] == [
        *(("memory", 1, 7000), ("bins", 1, 7000), ("memory", 2, 14_000), ("bins", 2, 14_000))
    ]
    alone = AblationPlan(task="recall", seeds=1, variants=("bins",))
    assert [one.steps for one in attempts(alone, lambda _: None)] == [16_000_000]
    for task, most in (("recall", 16_000_000), ("free", 4_000_000)):  # recall: the curriculum's own
        assert AblationPlan(task=task).training((), 1).train.total_steps == most


def test_a_duel_is_learned_against_scripts_by_agents_that_all_see_the_opponent() -> None:
    plan = AblationPlan(task="duel", most_steps=1000, num_envs=32)
    assert list(plan.switches) == ["bins", "units", "target linear", "target attention", "memory"]
    trainings = [plan.training(switches, 1) for switches in plan.switches.values()]
    assert len({repr((one.env, one.lessons)) for one in trainings}) == 1
    first = trainings[0]
    assert (first.env.world, first.env.learner, first.env.num_envs) == ("duel", "home", 32)
    assert first.env.observation.units
    assert first.train.algo == "hybrid_ppo"
    assert not any(map(faults_of, trainings))


def test_a_duel_is_trained_and_played() -> None:
    named = ("target attention",)
    plan = AblationPlan(task="duel", most_steps=512, seeds=1, num_envs=8, variants=named)
    (attempt,) = attempts(plan, lambda _: None)
    assert (attempt.variant, attempt.steps, attempt.episodes) == ("target attention", 512, 8)


def faults_of(plan: TrainingPlan) -> list[str]:
    return [fault.what for fault in part_faults(plan.train, plan.env, takes_parts=True)]


def test_stale_samples_are_learned_with_dual_clip_and_without() -> None:
    plan = AblationPlan(task="stale", most_steps=1000, num_envs=32)
    assert list(plan.switches) == ["bins", "dual clip", "dual clip 1.5"]
    without, with_it, tight = (plan.training(switches, 1) for switches in plan.switches.values())
    assert without.train.samples.keep == with_it.train.samples.keep == 16
    for one, bound in ((with_it, 3.0), (tight, 1.5)):
        assert differing(without.train, one.train) == {"dual_clip"}
        assert one.train.dual_clip == bound
    attack = AblationPlan(task="attack", threshold=0.4).training((), 1)
    assert without.lessons == attack.lessons


def test_an_attempt_tells_how_much_was_clipped() -> None:
    named = ("bins", "dual clip")
    plan = replace(TINY, task="stale", most_steps=2048, seeds=1, variants=named)
    without, with_it = attempts(plan, lambda _: None)
    assert with_it.clip_fraction is not None
    assert 0 <= with_it.clip_fraction <= 1
    assert (without.dual_clipped, with_it.dual_clipped is None) == (None, False)
    found = summaries([without, replace(with_it, clip_fraction=0.5), with_it])
    expected = (0.5 + with_it.clip_fraction) / 2
    assert found[1]["clip_fraction"] == pytest.approx(expected)


def test_every_variant_is_trained_from_every_seed() -> None:
    said: list[str] = []
    done = list(attempts(FEW, said.append))
    assert [(one.variant, one.seed) for one in done] == [
        (name, seed) for seed in (1, 2) for name in ("bins", "masks")
    ]
    assert {one.episodes for one in done} == {16}
    assert {one.steps for one in done} == {512}
    assert not any(one.reached for one in done)
    assert all(one.seconds > 0 for one in done)
    assert said[0].startswith("bins, seed 1: NOT reached after 512 steps")


def ends(middle: float | None, low: float | None, high: float | None) -> dict:
    return {"median": middle, "lowest": low, "highest": high}


def test_a_spread_is_median_and_range_and_never_lies_beyond_all() -> None:
    assert spread([3.0, 1.0, 2.0]) == ends(2.0, 1.0, 3.0)
    assert spread([3.0, None, 2.0]) == ends(3.0, 2.0, None)
    assert spread([None, None, 2.0]) == ends(None, 2.0, None)
    assert spread([4.0, 1.0]) == ends(2.5, 1.0, 4.0)


def test_what_never_reached_the_threshold_is_not_counted_as_fast() -> None:
    done = [
        Attempt("bins", 1, reached=True, steps=100, seconds=1.0, wins=9, episodes=10),
        Attempt("bins", 2, reached=False, steps=50, seconds=0.5, wins=1, episodes=10),
        Attempt("bins", 3, reached=True, steps=300, seconds=3.0),
        Attempt("masks", 1, reached=True, steps=70, seconds=7.0),
    ]
    bins, masks = summaries(done)
    assert [one["variant"] for one in (bins, masks)] == ["bins", "masks"]
    assert (bins["reached"], bins["trained"]) == (2, 3)
    assert bins["steps"] == ends(300, 100, None)
    assert bins["seconds"] == ends(3.0, 1.0, None)
    assert masks["seconds"]["median"] == pytest.approx(7.0)
    assert bins["won"] == wilson(10, 20)
    assert masks["won"].win_rate is None


def test_everything_at_once_is_trained_and_played() -> None:
    plan = replace(TINY, most_steps=256, seeds=1, leave_one_out=True, variants=("everything",))
    (attempt,) = attempts(plan, lambda _: None)
    assert (attempt.variant, attempt.steps, attempt.episodes) == ("everything", 256, 16)


def tried(variant: str, seed: int, *, steps: int, reached: bool = True, wins: int = 80) -> Attempt:
    return Attempt(
        variant, seed, reached=reached, steps=steps, seconds=1.0, wins=wins, episodes=100
    )


def both(attention: list[Attempt], linear: list[Attempt]) -> str:
    sentence = contrast([*attention, *linear])
    assert sentence is not None
    return sentence


def test_where_all_reached_the_threshold_steps_are_compared_seed_by_seed() -> None:
    attention = [tried("target attention", seed, steps=100 * seed) for seed in (1, 2, 3)]
    linear = [tried("target linear", seed, steps=200 * seed) for seed in (1, 2, 3)]
    assert both(attention, linear) == (
        "target attention against target linear: not shown to be better, it took 0.500 times the "
        "steps to the threshold (3 seeds in pairs, 95 %)"
    )  # all alike: no interval
    slower = [tried("target attention", seed, steps=200 + seed) for seed in (1, 2)]
    assert ": worse, it took 2.015 [1.952, 2.080] times" in both(
        slower, [tried("target linear", seed, steps=100) for seed in (1, 2)]
    )


def test_chance_is_not_called_better() -> None:
    """ln of the ratios: +-ln 2, mean 0, standard error ln 2; t(0.975, 1) is 12.706."""
    sentence = both(
        [tried("everything", 1, steps=200), tried("everything", 2, steps=100)],
        [tried("target linear", 1, steps=100), tried("target linear", 2, steps=200)],
    )
    assert sentence.startswith("everything (target attention) against target linear: not shown to ")
    interval = student_interval([-log(2), log(2)])
    assert interval.upper == pytest.approx(12.706 * log(2), rel=1e-4)
    assert f"1.000 [{exp(interval.lower):.3f}, {exp(interval.upper):.3f}]" in sentence


def test_where_one_did_not_reach_it_win_rates_at_the_end_are_compared() -> None:
    attention = [tried("target attention", seed, steps=9, wins=70) for seed in (1, 2, 3)]
    linear = [tried("target linear", n, steps=9, reached=n > 1, wins=60) for n in (1, 2, 3)]
    assert both(attention, linear) == (
        "target attention against target linear: not shown to be better, its win rate at the end "
        "is higher by +0.100 (3 seeds in pairs, 95 %)"
    )


@pytest.mark.parametrize("names", [("bins", "target linear"), ("everything", "without units")])
def test_without_both_nothing_is_said(names: tuple[str, str]) -> None:
    assert contrast([tried(name, seed, steps=1) for name in names for seed in (1, 2)]) is None
    one_seed = [tried(name, 1, steps=1) for name in ("everything", "target linear")]
    assert contrast(one_seed) is None
