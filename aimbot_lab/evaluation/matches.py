"""Matches of two players in a world of two sides, the same starts for every pair.

Many pairs play side by side, so that players which can do so act in one call for all of them. What
comes of a pair depends on its two players, their names and the seed alone, not on the other pairs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from aimbot_lab.evaluation.episodes import first_episodes
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Int64Array,
    seats_of,
    step_buffers,
)
from aimbot_lab.foundation.world_type import Act, MakePlayer

PATIENCE = 2  # times the longest episode, after which a match that goes on is an error
SIDES = ("home", "away")
IDLE = -1  # the number of no player

Seated = Callable[[Float32Array, BoolArray, BoolArray], Float32Array]
"""A player in one seat of each of B matches: world actions [B, A] for observations [B, D], masks
[B, choices] and starts [B], which are True where a match begins with the observations."""


@dataclass(frozen=True)
class MatchPlayer:
    """A player by its name; `sit` makes one that remembers nothing, from a seed."""

    name: str
    sit: Callable[[int], Seated]
    step: int | None = None  # of the training that it is from; None: a script
    run: str | None = None


Pair = tuple[MatchPlayer, MatchPlayer]  # at home and away
Side = tuple[MatchPlayer, int]  # one side of all matches of a pair: who plays it, and its seed


def script_player(name: str, make: MakePlayer, world: BatchWorld) -> MatchPlayer:
    """The script that `make` makes, as it plays one seat of `world`."""

    def sit(seed: int) -> Seated:
        act = make(world, seed)
        return lambda observations, _masks, starts: act(observations, starts)

    return MatchPlayer(name, sit)


class Players(Protocol):
    """Players by their numbers, who act in the seats of many matches."""

    def seat(self, sits: Int64Array, kept: Iterable[int] = ()) -> None:
        """Assign player `sits[b]` to row b from now on; other numbers leave the row idle.

        The players `kept` will sit somewhere soon.
        """

    def act(
        self, observations: Float32Array, masks: BoolArray, starts: BoolArray, actions: Float32Array
    ) -> None:
        """Write the world actions [B, A] of the rows in which these players sit.

        `observations` [B, D], `masks` [B, choices] and `starts` [B] are those of all rows.
        """


class EachAlone:
    """`players`, each of which acts in a call of its own."""

    def __init__(self, players: Mapping[int, Seated]) -> None:
        self._players = players
        self._rows: dict[int, Int64Array] | None = None  # of each player

    def seat(self, sits: Int64Array, kept: Iterable[int] = ()) -> None:
        """See `Players`.

        A player acts in all rows that it began in until it has left the last of them, since what
        it draws depends on how many they are.
        """
        del kept
        begun = self._rows or {number: np.flatnonzero(sits == number) for number in self._players}
        self._rows = {
            number: rows for number, rows in begun.items() if (sits[rows] == number).any()
        }

    def act(
        self, observations: Float32Array, masks: BoolArray, starts: BoolArray, actions: Float32Array
    ) -> None:
        """See `Players`."""
        for number, rows in (self._rows or {}).items():
            player = self._players[number]
            actions[rows] = player(observations[rows], masks[rows], starts[rows])


def each_alone(sides: Sequence[Side]) -> Sequence[Players]:
    """The players of `sides`, by their places."""
    return [EachAlone({number: player.sit(seed) for number, (player, seed) in enumerate(sides)})]


class PairActor:
    """Home and away in all matches of `world`, of two agents a row, about to be reset."""

    def __init__(self, world: BatchWorld, home: Seated, away: Seated) -> None:
        self._world, self._sides = world, (home, away)
        self._masks = np.ones((seats_of(world), sum(world.spec.branches)), np.bool_)

    def __call__(self, observations: Float32Array, starts: BoolArray) -> Float32Array:
        """World actions [N, A] in the world's present state.

        `starts` [N] is True where a match begins with `observations` [N, D].
        """
        self._world.action_masks(self._masks)
        parts = (np.split(array, 2) for array in (observations, self._masks, starts))
        given = zip(*parts, strict=True)
        return np.concatenate([act(*own) for act, own in zip(self._sides, given, strict=True)])


def seated(home: MatchPlayer, away: MatchPlayer, world: BatchWorld, *, seed: int) -> PairActor:
    """Both players in the matches of `world` that begin by `seed`, remembering nothing."""
    (_, own), (_, other) = _sides((home, away), seed)
    return PairActor(world, home.sit(own), away.sit(other))


def play_pairs(
    pairs: Sequence[Pair],
    worlds: Sequence[BatchWorld],
    *,
    seed: int,
    seat: Callable[[Sequence[Side]], Sequence[Players]] = each_alone,
    on_pair: Callable[[Pair], None] = lambda _pair: None,
) -> list[tuple[int, int, int]]:
    """Wins, draws and losses of the home player of each of `pairs`, all at once.

    Each pair plays the first episode of each row of one of `worlds`, which are alike and of two
    agents a row, and which `seed` begins. `seat` gives the players of sides, known by their places:
    those of pair k are 2 k and 2 k + 1. `on_pair` is called when a pair is through. Raises
    RunFailedError where a match does not end.
    """
    spec, games, seats = worlds[0].spec, worlds[0].num_envs, seats_of(worlds[0])
    rows, width = len(pairs) * seats, len(spec.branches) + spec.continuous
    observations = np.zeros(rows, spec.observation_dtype)
    masks = np.ones((rows, sum(spec.branches)), np.bool_)
    starts = np.ones(rows, np.bool_)
    actions = np.zeros((rows, width), np.float32)
    sides = [side for pair in pairs for side in _sides(pair, seed)]
    sits = np.repeat(np.arange(len(sides)), games)
    outcomes = np.full((len(pairs), games), np.nan)
    running = {}
    for k, (pair, world) in enumerate(zip(pairs, worlds, strict=True)):
        own = slice(k * seats, (k + 1) * seats)
        buffers = step_buffers(world)._replace(observations=observations[own], finished=starts[own])
        world.reset(seed, buffers.observations)
        act, limit, error = _doing(actions[own]), longest(world), endless_match(pair)
        running[k] = first_episodes(world, act, buffers, limit=limit, error=error)
    players, seats_change = seat(sides), True
    while running:
        for k in running:
            worlds[k].action_masks(masks[k * seats : (k + 1) * seats])
        for some in players:
            if seats_change:
                some.seat(sits)
            some.act(observations, masks, starts, actions)
        seats_change = False
        for k, steps in list(running.items()):
            _, batch, places, matches = next(steps)
            if not len(places):
                continue
            outcomes[k, matches] = batch.outcome[places]
            home = k * seats + matches
            sits[home] = sits[home + games] = IDLE
            actions[home] = actions[home + games] = 0.0
            seats_change = True
            if not np.isnan(outcomes[k]).any():
                del running[k]
                on_pair(pairs[k])
    wins, draws, losses = ((outcomes == result).sum(axis=1).tolist() for result in (1, 0, -1))
    return list(zip(wins, draws, losses, strict=True))


def _doing(actions: Float32Array) -> Act:
    """What `actions` hold at the time."""
    return lambda _observations, _starts: actions


def _sides(pair: Pair, seed: int) -> list[Side]:
    """Both sides of `pair`, each with a seed that depends on the pair and `seed` alone."""
    names = [player.name for player in pair]
    return [
        (player, pair_seed(seed, *names, side)) for player, side in zip(pair, SIDES, strict=True)
    ]


def longest(world: BatchWorld) -> int:
    """Steps after which a match that goes on is an error."""
    return PATIENCE * (world.spec.max_steps or 30_000)


def endless_match(pair: Pair) -> Callable[[int], RunFailedError]:
    """The error of a match of `pair` that did not end."""
    home, away = pair
    return lambda _: RunFailedError(f"{home.name} and {away.name}: a match does not end")


def pair_seed(seed: int, *names: str) -> int:
    """The seed of a player in a pair: another one for each, not changed by other pairs."""
    return derive_seed(seed, "league", *names)
