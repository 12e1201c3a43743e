"""Scripted players stand in an order, and difficulties are real."""

from typing import NamedTuple

import numpy as np
import pytest

from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.duel.core.state import HIT
from aimbot_lab.worlds.duel.opposed import OpposedWorld
from aimbot_lab.worlds.duel.players import make_players
from aimbot_lab.worlds.duel.settings import DuelSettings

MATCHES, DECISIONS = 128, 300
RUNNING = 9


class Played(NamedTuple):
    """First matches of home against away."""

    wins: int
    losses: int
    first_hit: float  # mean decisions until anybody was hit, DECISIONS where nobody was


def played(home: str, away: str, level: int) -> Played:
    settings = DuelSettings(num_envs=MATCHES, learner="home")
    world = OpposedWorld(settings)
    weights = tuple(float(level == k) for k in range(1, 6))
    world.set_scenario(Scenario({away: 1.0}, difficulty={away: weights}))
    buffers = step_buffers(world)
    world.reset(5, buffers.observations)
    act = make_players(settings)[home](world, 9)
    outcome, hit = np.full(MATCHES, RUNNING), np.full(MATCHES, DECISIONS)
    for decision in range(DECISIONS):
        batch = world.step(act(buffers.observations, buffers.finished), buffers)
        new = outcome[batch.row] == RUNNING
        outcome[batch.row[new]] = batch.outcome[new]
        anybody = (world.duel.state.shot.reshape(2, MATCHES) == HIT).any(axis=0)
        hit[anybody & (hit == DECISIONS) & (outcome == RUNNING)] = decision
    return Played(int((outcome == 1).sum()), int((outcome == -1).sum()), float(hit.mean()))


def assert_better(found: Played) -> None:
    """Wins exceed losses by more than 1.645 standard deviations of a fair coin: 5 % level."""
    assert found.wins - found.losses > 1.645 * np.sqrt(found.wins + found.losses), found


@pytest.mark.parametrize("pair", [("random", "still"), ("greedy", "random")])
def test_each_player_beats_the_one_before_it_in_the_open_hall(pair: tuple[str, str]) -> None:
    assert_better(played(*pair, level=1))


@pytest.mark.parametrize("level", range(1, 6))
def test_the_aimbot_beats_the_greedy_player_on_every_difficulty(level: int) -> None:
    assert_better(played("aimbot", "greedy", level))


def test_the_first_hit_between_two_aimbots_comes_later_from_difficulty_to_difficulty() -> None:
    times = [played("aimbot", "aimbot", level).first_hit for level in range(1, 6)]
    assert times == sorted(times), times
    assert times[4] > 5 * times[0]
