"""What each switch brings: which trainings are compared, and what they come to."""

from dataclasses import replace
from math import exp, log

import pytest

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
from aimbot_lab.foundation.episodes import student_interval, wilson
from aimbot_lab.training.networks.settings import PARTS
from aimbot_lab.training.settings import TrainSettings

TINY = AblationPlan(task="goto", threshold=0.9, most_steps=512, seeds=2, num_envs=16, n_steps=16)


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
        "is higher by +10.0 points (3 seeds in pairs, 95 %)"
    )
