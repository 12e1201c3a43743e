"""Who plays in a league: agents, and the scripts of their world."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import BatchWorld, BoolArray, Float32Array, seats_of
from aimbot_lab.foundation.world_type import MakePlayer
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.self_play.seated_agent import SeatedAgent


class Seated(Protocol):
    """A player in one seat of each of B matches."""

    def act(self, observations: Float32Array, masks: BoolArray, starts: BoolArray) -> Float32Array:
        """World actions [B, A] for `observations` [B, D] and `masks` [B, choices]."""
        ...


@dataclass(frozen=True)
class LeaguePlayer:
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


def agent_player(
    name: str, agent: Agent, *, step: int, run: str, temperature: Temperature | None = None
) -> LeaguePlayer:
    """`agent` as a player, at the temperature that it is advised to play at unless one is given."""
    return LeaguePlayer(name, lambda seed: SeatedAgent(agent, seed, temperature), step, run)


def script_player(name: str, make: MakePlayer, world: Any) -> LeaguePlayer:
    """The script that `make` makes, as it plays one seat of `world`."""
    return LeaguePlayer(name, lambda seed: SeatedScript(make, world, seed))


def game_counts(outcomes: np.ndarray) -> tuple[int, int, int]:
    """Wins, draws and losses among `outcomes` [G], which are 1, 0 and -1."""
    return int((outcomes > 0).sum()), int((outcomes == 0).sum()), int((outcomes < 0).sum())


def pair_seed(seed: int, *names: str) -> int:
    """The seed of a player in a pair: another one for each, whatever else is in the league."""
    return derive_seed(seed, "league", *names)
