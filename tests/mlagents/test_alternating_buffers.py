"""Observations that are given away never change, and their arrays are used again otherwise."""

import numpy as np
import pytest

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.mlagents.player import AlternatingBuffers
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings


def buffers() -> AlternatingBuffers:
    """Of three rows of the arena."""
    arena = Arena(ArenaSettings(num_envs=3))
    arena.set_scenario(Scenario({"goto": 1.0}))
    return AlternatingBuffers(arena)


def written(pair: AlternatingBuffers, number: float) -> np.ndarray:
    """What is given after a step that writes `number` everywhere."""
    pair.turn().observations.fill(number)
    return pair.give()


def test_two_sets_of_arrays_are_enough_where_nothing_is_kept() -> None:
    pair = buffers()
    places = {written(pair, number).ctypes.data for number in range(9)}
    assert len(places) == 2


@pytest.mark.parametrize("part", [slice(None), np.s_[1:2], np.s_[:, 3]])
def test_what_is_kept_stays_as_it_was_given(part: object) -> None:
    pair, kept = buffers(), []
    for number in range(9):
        if number in (2, 3, 6):
            kept.append((number, written(pair, number)[part]))
        else:
            written(pair, number)
    for number, array in kept:
        assert (array == number).all()


def test_the_last_step_stays_while_the_next_is_written() -> None:
    pair = buffers()
    last = written(pair, 0)
    for number in range(1, 9):
        following = written(pair, number)
        assert (last == number - 1).all()
        last = following
