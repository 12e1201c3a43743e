"""Matches of two players in a world of two sides, the same starts for every pair."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    seats_of,
)
from aimbot_lab.foundation.world_type import MakePlayer

PATIENCE = 2  # times the longest episode, after which a match that goes on is an error


class Seated(Protocol):
    """A player in one seat of each of B matches."""

    def act(self, observations: Float32Array, masks: BoolArray, starts: BoolArray) -> Float32Array:
        """World actions [B, A] for `observations` [B, D] and `masks` [B, choices]."""
        ...


@dataclass(frozen=True)
class MatchPlayer:
    """A player by its name; `sit` makes one that remembers nothing, from a seed."""

    name: str
    sit: Callable[[int], Seated]
    step: int | None = None  # of the training that it is from; None: a script
    run: str | None = None


class SeatedScript:
    """A scripted player of a world."""

    def __init__(self, make: MakePlayer, world: BatchWorld, seed: int) -> None:
        self._act = make(world, seed)

    def act(self, observations: Float32Array, masks: BoolArray, starts: BoolArray) -> Float32Array:
        """World actions [B, A]."""
        del masks
        return self._act(observations, starts)


def script_player(name: str, make: MakePlayer, world: BatchWorld) -> MatchPlayer:
    """The script that `make` makes, as it plays one seat of `world`."""
    return MatchPlayer(name, lambda seed: SeatedScript(make, world, seed))


class Fixture(NamedTuple):
    """What every pair plays: `world` of two agents a row, whose rows begin by `seed`."""

    world: BatchWorld
    seed: int


class Sides:
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
        return np.concatenate(
            [
                side.act(*given)
                for side, given in zip(self._sides, zip(*parts, strict=True), strict=True)
            ]
        )


def seated(home: MatchPlayer, away: MatchPlayer, fixture: Fixture) -> Sides:
    """Both players in their seats, remembering nothing."""
    home_seed, away_seed = (
        pair_seed(fixture.seed, home.name, away.name, side) for side in ("home", "away")
    )
    return Sides(fixture.world, home.sit(home_seed), away.sit(away_seed))


def longest(world: BatchWorld) -> int:
    """Steps after which a match that goes on is an error."""
    return PATIENCE * (world.spec.max_steps or 30_000)


def pair_seed(seed: int, *names: str) -> int:
    """The seed of a player in a pair: another one for each, whoever else plays."""
    return derive_seed(seed, "league", *names)
