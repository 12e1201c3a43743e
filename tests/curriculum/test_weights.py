"""Weights of a mix move by one law, be they of a target's difficulties or of targets."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aimbot_lab.curriculum.settings import MixWeights, WeightChange
from aimbot_lab.foundation.errors import ConfigurationError

NAMES = ("one", "two", "three", "four", "five")
SHARES = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=5)
EVEN = MixWeights.of_difficulties([1, 1, 1, 1, 1])


@pytest.mark.parametrize(
    ("weights", "level", "value", "reason"),
    [
        (EVEN.lock(1), 1, 0.5, "locked"),
        (EVEN, 1, 1.5, "between 0 and 1"),
        (EVEN, 1, math.nan, "between 0 and 1"),
        (EVEN, 6, 0.1, "between 1 and 5"),
        (EVEN, 1.5, 0.1, "whole number"),
        (EVEN.lock(2).lock(3), 1, 0.7, "impossible"),
    ],
)
def test_an_impossible_move_is_refused(
    weights: MixWeights, level: int, value: float, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        weights.move(level, value)


@pytest.mark.parametrize("weights", [[0, 0, 0, 0, 0], [math.inf] * 5, [-1, 1, 1, 1, 1], []])
def test_weights_begin_equal_and_those_that_are_none_are_refused(weights: list[float]) -> None:
    assert EVEN.weights == (0.2,) * 5
    with pytest.raises(ConfigurationError, match="difficulty weights"):
        MixWeights.of_difficulties(weights)


@settings(max_examples=40)
@given(SHARES, st.data())
def test_the_sum_stays_1_locked_ones_stay_and_the_others_keep_their_proportions(
    shares: list[float], data: st.DataObject
) -> None:
    before = MixWeights.normalised(dict(zip(NAMES, shares, strict=False)))
    moved = data.draw(st.sampled_from(before.keys))
    others = [name for name in before.keys if name != moved]
    locks = data.draw(st.lists(st.sampled_from(others), max_size=len(others) - 1, unique=True))
    for name in locks:
        before = before.lock(name)
    given_to = dict(zip(before.keys, before.weights, strict=True))
    free = 1 - sum(given_to[name] for name in locks)
    after = before.move(moved, data.draw(st.floats(0.0, free)))
    now = dict(zip(after.keys, after.weights, strict=True))
    assert math.fsum(after.weights) == pytest.approx(1.0)
    assert all(now[name] == given_to[name] for name in locks)
    left = [name for name in others if name not in locks]
    scale = sum(now[name] for name in left) / sum(given_to[name] for name in left)
    assert [now[name] for name in left] == pytest.approx([scale * given_to[name] for name in left])


@settings(max_examples=40)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5).filter(any), st.data())
def test_a_dragged_weight_comes_as_far_as_the_locks_let_it(
    shares: list[float], data: st.DataObject
) -> None:
    weights = MixWeights.of_difficulties(shares)
    place = data.draw(st.integers(1, len(shares)))
    others = [key for key in weights.keys if key != place]
    for key in data.draw(st.lists(st.sampled_from(others), unique=True)):
        weights = weights.lock(key)
    wanted = data.draw(st.floats(0.0, 1.0))
    room = 1 - sum(w for w, locked in zip(weights.weights, weights.locked, strict=True) if locked)
    found = weights.drag(place, wanted).weights
    gives_way = sum(weights.locked) < len(others)
    assert found[place - 1] == pytest.approx(min(wanted, room) if gives_way else room)
    assert sum(found) == pytest.approx(1.0)


def test_a_change_is_read_as_it_is_written() -> None:
    for change in (
        WeightChange("goto", ((3, 0.5), (1, 0.1)), lock=(3,), unlock=(2,)),
        WeightChange(None, (("goto", 0.5),), lock=("goto",)),
    ):
        assert WeightChange.from_json(change.as_json()) == change
