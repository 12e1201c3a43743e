"""Scripted players in the away seats: one for each match, chosen where the match begins.

What players remember and draw is kept by match, so that a match goes on alike in any world of any
number of matches, and in one that was restored.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.world import Float32Array, WorldSpec
from aimbot_lab.worlds.arena.greedy import PLAYER, GreedyAgent
from aimbot_lab.worlds.duel.core.state import ACTION_COLUMNS, BRANCHES, MOUSE
from aimbot_lab.worlds.duel.kinds import KINDS
from aimbot_lab.worlds.duel.players.aimbot import MEMORY, Aimbot
from aimbot_lab.worlds.duel.settings import DuelSettings

RANDOM, GREEDY, AIMBOT = (KINDS.index(name) for name in ("random", "greedy", "aimbot"))
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
Words = npt.NDArray[np.uint64]


class ScriptedOpponents:
    """Plays the away seats of B matches, each by the kind of its match.

    `memory` [B, MEMORY] is the aimbot's; `keys` [B] are the seeds of random players.
    """

    def __init__(self, spec: WorldSpec, settings: DuelSettings) -> None:
        self._spec, matches = spec, settings.num_envs
        self._aimbot = Aimbot(spec, settings, 0)
        self._greedy = GreedyAgent(
            spec, ray_angles=settings.rays.angles, turn_per_unit=settings.mouse_factor, enemy=PLAYER
        )
        self.memory = np.zeros((matches, MEMORY))
        self.keys = np.zeros(matches, np.uint64)

    def reset(self, seed: int) -> None:
        """Forget everything; what is drawn from now on follows from `seed`."""
        self.memory[:] = 0.0
        rows = np.arange(len(self.keys), dtype=np.uint64)
        self.keys[:] = _mixed(_mixed(np.uint64(seed % 2**64) + GOLDEN) ^ (rows * GOLDEN + MIX_1))

    def act(
        self,
        observations: Float32Array,
        kinds: np.ndarray,
        *,
        episode: np.ndarray,
        step: np.ndarray,
    ) -> Float32Array:
        """Actions [B, 4] of the away agents, which see `observations` [B, D].

        `kinds` [B] are those of the matches, `episode` and `step` [B] their number in the row and
        the decisions made in them. Zeros where nobody of these sits.
        """
        actions = np.zeros((len(observations), ACTION_COLUMNS), np.float32)
        rows = np.flatnonzero(kinds == RANDOM)
        if len(rows):
            actions[rows] = self._drawn(rows, episode[rows], step[rows])
        rows = np.flatnonzero(kinds == GREEDY)
        if len(rows):
            actions[rows] = self._greedy(observations[rows])
        rows = np.flatnonzero(kinds == AIMBOT)
        if len(rows):
            self._aimbot.memory = self.memory[rows]
            actions[rows] = self._aimbot(observations[rows])
            self.memory[rows] = self._aimbot.memory
        return actions

    def _drawn(self, rows: np.ndarray, episode: np.ndarray, step: np.ndarray) -> Float32Array:
        """Random actions [R, 4], which depend on match, episode and decision alone."""
        count = (episode.astype(np.uint64) << np.uint64(32)) + step.astype(np.uint64)
        word = _mixed(self.keys[rows] ^ _mixed(count * GOLDEN))
        columns = np.arange(1, ACTION_COLUMNS + 1, dtype=np.uint64) * GOLDEN
        shares = (_mixed(word[:, None] + columns) >> np.uint64(11)) * 2.0**-53
        actions = np.floor(shares * [*BRANCHES, 1.0])
        limit = self._spec.continuous_limit
        actions[:, MOUSE] = limit * (2.0 * shares[:, MOUSE] - 1.0)
        found: Float32Array = actions.astype(np.float32)
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """What the future depends on, by name; not copied."""
        return {"memory": self.memory, "keys": self.keys}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from `arrays`. Raises MisuseError where they are not of so many matches."""
        for name, own in self.arrays().items():
            given = arrays[name]
            if given.shape != own.shape or given.dtype != own.dtype:
                raise MisuseError(f"snapshot: opponents.{name} is {given.dtype} {given.shape}")
            if not np.isfinite(given.astype(np.float64)).all():
                raise MisuseError(f"snapshot: opponents.{name} holds what is not finite")
        for name, own in self.arrays().items():
            own[...] = arrays[name]


def _mixed(words: "Words | np.uint64") -> Words:
    """64-bit words in which every bit depends on every bit of `words` (SplitMix64)."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * MIX_1
        words = (words ^ (words >> np.uint64(27))) * MIX_2
        found: Words = np.asarray(words ^ (words >> np.uint64(31)), np.uint64)
    return found
