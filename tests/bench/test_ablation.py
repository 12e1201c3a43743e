"""What each switch brings: which trainings are compared, and what they come to."""

import pytest

from aimbot_lab.bench.ablation import (
    SWITCHES,
    AblationPlan,
    Attempt,
    Spread,
    attempts,
    spread,
    summaries,
)

TINY = AblationPlan(target="goto", threshold=0.9, most_steps=512, seeds=2, num_envs=16, n_steps=16)


def test_variants_differ_in_their_switch_alone() -> None:
    plain = AblationPlan().training({}, 1)
    assert next(iter(SWITCHES.values())) == {}
    for name, switches in SWITCHES.items():
        other = AblationPlan().training(switches, 1)
        changed = {
            key for key, value in vars(plain.train).items() if getattr(other.train, key) != value
        }
        assert changed == set(switches), name
        assert (other.seed, other.env, other.lessons) == (plain.seed, plain.env, plain.lessons)
    alone = [switches for switches in SWITCHES.values() if len(switches) == 1]
    assert len(alone) == 4
    assert {key for switches in alone for key in switches} == {
        "aim",
        "masks",
        "objective",
        "dual_clip",
    }


def test_every_variant_is_trained_from_every_seed() -> None:
    said: list[str] = []
    done = list(attempts(TINY, said.append))
    assert [(one.variant, one.seed) for one in done] == [
        (name, seed) for seed in (1, 2) for name in SWITCHES
    ]
    assert {one.steps for one in done} == {512}
    assert not any(one.reached for one in done)
    assert all(one.seconds > 0 for one in done)
    assert said[0].startswith("bins, seed 1: NOT reached after 512 steps")


def test_a_spread_is_median_and_range_and_never_lies_beyond_all() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert spread([3.0, None, 2.0]) == Spread(3.0, 2.0, None)
    assert spread([None, None, 2.0]) == Spread(None, 2.0, None)
    assert spread([4.0, 1.0]) == Spread(2.5, 1.0, 4.0)


def test_what_never_reached_the_threshold_is_not_counted_as_fast() -> None:
    done = [
        Attempt("bins", 1, reached=True, steps=100, seconds=1.0),
        Attempt("bins", 2, reached=False, steps=50, seconds=0.5),
        Attempt("bins", 3, reached=True, steps=300, seconds=3.0),
        Attempt("masks", 1, reached=True, steps=70, seconds=7.0),
    ]
    found = summaries(done)
    assert list(found) == ["bins", "masks"]
    assert (found["bins"].reached, found["bins"].trained) == (2, 3)
    assert found["bins"].steps == Spread(300, 100, None)
    assert found["bins"].seconds == Spread(3.0, 1.0, None)
    assert found["masks"].seconds.median == pytest.approx(7.0)
