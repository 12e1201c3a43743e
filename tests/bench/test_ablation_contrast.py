"""Whether attention is better than a linear head, in one sentence with its interval."""

from math import exp, log

import pytest

from aimbot_lab.bench.ablation import Attempt, contrast
from aimbot_lab.bench.turns import student_interval


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
