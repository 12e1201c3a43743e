"""Every pair of players in the same matches."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.world import BatchWorld, seats_of, step_buffers
from aimbot_lab.league.players import LeaguePlayer, Sides, game_counts, pair_seed

PATIENCE = 2  # times the longest episode, after which a match that goes on is an error


class Fixture(NamedTuple):
    """What every pair plays: `world` of two agents a row, whose rows begin by `seed`."""

    world: BatchWorld
    seed: int


def play_all(
    players: Sequence[LeaguePlayer], fixture: Fixture, *, on_pair: Callable[[str], None]
) -> np.ndarray:
    """[P, P, 3] wins, draws and losses of each of `players` against each.

    Every pair plays the first episode of each row, which begins alike for all of them.
    """
    counts = np.zeros((len(players), len(players), 3), np.int64)
    for one, other in combinations(range(len(players)), 2):
        wins, draws, losses = play_pair(players[one], players[other], fixture)
        counts[one, other] = wins, draws, losses
        counts[other, one] = losses, draws, wins
        on_pair(f"{players[one].name} - {players[other].name}")
    return counts


def seated(home: LeaguePlayer, away: LeaguePlayer, fixture: Fixture) -> Sides:
    """Both players in their seats, remembering nothing."""
    home_seed, away_seed = (
        pair_seed(fixture.seed, home.name, away.name, side) for side in ("home", "away")
    )
    return Sides(fixture.world, home.sit(home_seed), away.sit(away_seed))


def longest(world: BatchWorld) -> int:
    """Steps after which a match that goes on is an error."""
    return PATIENCE * (world.spec.max_steps or 30_000)


def play_pair(home: LeaguePlayer, away: LeaguePlayer, fixture: Fixture) -> tuple[int, int, int]:
    """Wins, draws and losses of `home` in the first episode of each row.

    Raises RunFailedError where one does not end.
    """
    world, seed = fixture
    rows, buffers = world.num_envs, step_buffers(world)
    sides = seated(home, away, fixture)
    world.reset(seed, buffers.observations)
    outcomes, starts = np.full(rows, np.nan), np.ones(seats_of(world), np.bool_)
    for _ in range(longest(world)):
        batch = world.step(sides(buffers.observations, starts), buffers)
        starts = buffers.finished.copy()
        for place in np.flatnonzero(batch.agent == 0) if batch else ():
            row = batch.row[place]
            if np.isnan(outcomes[row]):
                outcomes[row] = batch.outcome[place]
        if not np.isnan(outcomes).any():
            return game_counts(outcomes)
    raise RunFailedError(f"{home.name} and {away.name}: a match does not end")
