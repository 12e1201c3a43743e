"""Means over the episodes that ended since the last report."""

import numpy as np
import pytest

from aimbot_lab.training.callbacks.report_callback import EpisodeTally
from aimbot_lab.training.checkpoint.packing import pack, unpack
from tests.episode_batches import ended_batch

WON = "Warning|Result|Win|seconds=2.0|return=4.0"
DRAWN = "Warning|Result|Draw|seconds=3.0|return=0.0"
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


GOTO = "|target=goto|difficulty=3"


def test_draws_are_a_share_of_the_episodes_of_each_cell_and_of_all() -> None:
    counted = tally()
    counted.add(ended_batch([WON + GOTO, DRAWN + GOTO, DRAWN], order=[0, 1, 2], running=[3]))
    metrics = counted.take()
    assert metrics["rollout/draw_rate"] == pytest.approx(2 / 3)
    assert metrics["rollout/draw_rate/goto/3"] == 0.5
    counted.add(ended_batch([WON + GOTO], order=[4], running=[5]))
    assert counted.take()["rollout/draw_rate/goto/3"] == 0.0


def test_draw_rates_are_tracked_where_the_world_has_draws_or_there_was_one() -> None:
    for has_draws in (False, True):
        counted = EpisodeTally(("reward",), ("seconds",), has_draws=has_draws)
        counted.add(ended_batch([WON], order=[0], running=[1]))
        assert ("rollout/draw_rate" in counted.take()) is has_draws


def test_a_stored_tally_goes_on() -> None:
    whole, before, after = tally(), tally(), tally()
    first = ended_batch([WON, DRAWN + GOTO], order=[0, 3], running=[1, 4])
    for one in (whole, before):
        one.add(first)
    after.resume(unpack(pack(before.state())))
    for one in (whole, after):
        one.add(ended_batch([LOST + GOTO], order=[1], running=[2]))
    np.testing.assert_equal(after.take(), whole.take())
