"""Means over the episodes that ended since the last report."""

import numpy as np

from aimbot_lab.training.callbacks.episode_stats import EpisodeTally
from tests.episode_batches import ended_batch

WON = "Warning|Result|Win|seconds=2.0|return=4.0"
LOST = "Warning|Result|Lose|seconds=5.0|return=-1.0"


def tally() -> EpisodeTally:
    return EpisodeTally(("reward",), ("seconds",))


def test_columns_of_the_world_are_tracked_as_means() -> None:
    counted = tally()
    counted.add(ended_batch([WON], order=[0], running=[1]))
    counted.add(ended_batch([LOST], order=[1], running=[2]))
    metrics = counted.take()
    assert metrics["rollout/seconds"] == 3.5
    assert metrics["rollout/return"] == 1.5
    assert metrics["rollout/episodes"] == 2.0
    assert counted.take() == {}


def test_a_stored_tally_goes_on() -> None:
    whole, before, after = tally(), tally(), tally()
    first = ended_batch([WON], order=[0], running=[1])
    for one in (whole, before):
        one.add(first)
    after.resume(before.state())
    for one in (whole, after):
        one.add(ended_batch([LOST], order=[1], running=[2]))
    np.testing.assert_equal(after.take(), whole.take())
