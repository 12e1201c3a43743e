"""Weights of targets move by the laws of difficulty weights, however many there are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aimbot_lab.curriculum.target_weights import TargetWeights
from aimbot_lab.foundation.difficulty_weights import DifficultyWeights
from aimbot_lab.foundation.errors import ConfigurationError

NAMES = ("one", "two", "three", "four", "five")
SHARES = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=5)


@given(SHARES, st.data())
def test_the_sum_stays_1_locked_ones_stay_and_the_others_keep_their_proportions(
    shares: list[float], data: st.DataObject
) -> None:
    before = TargetWeights.normalised(dict(zip(NAMES, shares, strict=False)))
    moved = data.draw(st.sampled_from(before.targets))
    others = [name for name in before.targets if name != moved]
    locks = data.draw(st.lists(st.sampled_from(others), max_size=len(others) - 1, unique=True))
    for name in locks:
        before = before.lock(name)
    given_to = dict(zip(before.targets, before.weights, strict=True))
    free = 1 - sum(given_to[name] for name in locks)
    after = before.move(moved, data.draw(st.floats(0.0, free)))
    now = dict(zip(after.targets, after.weights, strict=True))
    assert math.fsum(after.weights) == pytest.approx(1.0)
    assert all(now[name] == given_to[name] for name in locks)
    left = [name for name in others if name not in locks]
    scale = sum(now[name] for name in left) / sum(given_to[name] for name in left)
    assert [now[name] for name in left] == pytest.approx([scale * given_to[name] for name in left])


@given(st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5).filter(any), st.integers(1, 5))
def test_five_targets_move_as_five_difficulties(shares: list[float], level: int) -> None:
    levels = DifficultyWeights.normalised(shares)
    targets = TargetWeights(NAMES, levels.weights, levels.locked)
    assert targets.move(NAMES[level - 1], 0.3).weights == levels.move(level, 0.3).weights


def test_a_locked_target_does_not_move() -> None:
    weights = TargetWeights.normalised({"one": 1.0, "two": 1.0}).lock("one")
    with pytest.raises(ConfigurationError, match="one: its weight is locked"):
        weights.move("one", 0.2)
    with pytest.raises(ConfigurationError, match=r"two: a weight of 0\.2 is impossible"):
        weights.move("two", 0.2)
