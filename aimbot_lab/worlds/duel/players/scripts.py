"""All scripted players of the duel, by name."""

from collections.abc import Mapping, Sequence

import numpy as np

from aimbot_lab.foundation.world import BatchWorld, BoolArray, Float32Array
from aimbot_lab.foundation.world_type import Act, MakePlayer, RandomAgent
from aimbot_lab.worlds.arena.greedy import PLAYER, GreedyAgent
from aimbot_lab.worlds.duel.core.state import ACTION_COLUMNS
from aimbot_lab.worlds.duel.players.aimbot import Aimbot
from aimbot_lab.worlds.duel.settings import DuelSettings


def stand_still(observations: Float32Array, _starts: BoolArray | None = None) -> Float32Array:
    """Actions [N, 4] of who does nothing."""
    return np.zeros((len(observations), ACTION_COLUMNS), np.float32)


class EachAgent:
    """A player of its own for each agent of a world, so that two of a kind do not play alike."""

    def __init__(self, players: Sequence[Act]) -> None:
        self._players = players

    def __call__(self, observations: Float32Array, starts: BoolArray) -> Float32Array:
        """Actions [N, 4], agent by agent."""
        parts = np.split(observations, len(self._players))
        made = zip(self._players, parts, strict=True)
        return np.concatenate([player(seen, starts) for player, seen in made])


def make_players(settings: DuelSettings) -> Mapping[str, MakePlayer]:
    """Who makes each player of a duel with `settings`, from the weakest to the strongest."""

    def greedy(world: BatchWorld, _seed: int) -> Act:
        angles, turn = settings.rays.angles, settings.mouse_factor
        return GreedyAgent(world.spec, ray_angles=angles, turn_per_unit=turn, enemy=PLAYER)

    def aimbot(world: BatchWorld, seed: int) -> Act:
        own = [Aimbot(world.spec, settings, seed + 7 * k) for k in range(world.spec.agents)]
        return own[0] if len(own) == 1 else EachAgent(own)

    return {
        "still": lambda _world, _seed: stand_still,
        "random": lambda world, seed: RandomAgent(world.spec, seed),
        "greedy": greedy,
        "aimbot": aimbot,
    }
