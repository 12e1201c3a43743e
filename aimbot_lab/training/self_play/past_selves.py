"""Past selves as a world's opponents: who sits in which match, and what came of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch as th

from aimbot_lab.evaluation.matches import IDLE
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array, WorldSpec
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.self_play.players import SnapshotPlayers, new_players
from aimbot_lab.training.self_play.pool import SnapshotPool, snapshot_name
from aimbot_lab.training.self_play.scores import GamesTable, RecentScores, RunningRating
from aimbot_lab.training.settings import TrainSettings

REFERENCE = "reference"
LEARNER = "learner-{:06d}"  # between the snapshot of that number and the next


class PastSelves:
    """Snapshots of `pool` in the matches whose kind is one of `played`.

    A match of kind `reference` is played by the snapshot of that name, any other by one of
    `line_up`, drawn where it begins. Random numbers are its own.
    """

    def __init__(
        self,
        pool: SnapshotPool,
        spec: WorldSpec,
        train: TrainSettings,
        *,
        played: Sequence[str],
        seed: int,
        initial_elo: float = 1200.0,
    ) -> None:
        self._pool, self._spec, self._train = pool, spec, train
        self._played = tuple(played)
        algorithm = algorithm_of(train)
        self._masked = algorithm.masked or algorithm.adapter(train).masks_shown
        self._drawn = np.random.default_rng(derive_seed(seed, "seats"))
        self._sampled = th.Generator().manual_seed(derive_seed(seed, "actions")).get_state()
        self.engine = "torch"
        self.games, self.recent = GamesTable(), RecentScores()
        self.running = RunningRating(initial_elo)
        self.line_up: tuple[int, ...] = (0,)  # numbers of snapshots
        self.reference = 0
        self._kinds: list[str] = []  # [B] of the matches
        self._sits: Int64Array = np.zeros(0, np.int64)  # [B] numbers of snapshots
        self._memory: Float32Array | None = None  # [B, ...] of those that remember
        self._begins: BoolArray = np.zeros(0, np.bool_)  # [B] nothing was decided yet
        self._players: SnapshotPlayers | None = None
        self._seated = False  # whether these know who sits where

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes players of its own: addresses in memory can't be copied."""
        return {**vars(self), "_players": None, "_seated": False}

    def prepare(self) -> SnapshotPlayers:
        """Have players ready, whose kernels take seconds to compile, before a match begins."""
        if self._players is None:
            self._players = new_players(
                self._pool.weights, self._spec, self._train, engine=self.engine
            )
        return self._players

    @property
    def needs_masks(self) -> bool:
        """Whether the policies see them, or obey them."""
        return self._masked

    def begin(self, matches: int) -> None:
        """Begin with `matches` matches, in which no snapshot sits yet."""
        self._sits = np.full(matches, IDLE, np.int64)
        self._begins = np.ones(matches, np.bool_)
        self._kinds, self._memory, self._seated = [""] * matches, None, False

    def seat(self, matches: Int64Array, kinds: Sequence[str]) -> None:
        """Choose who plays each of `matches` [R], which begin now."""
        for match, kind in zip(matches.tolist(), kinds, strict=True):
            self._kinds[match] = kind
            self._sits[match] = self._chosen(kind)
        self._begins[matches] = True
        self._seated = False

    def _chosen(self, kind: str) -> int:
        if kind not in self._played:
            return IDLE
        if kind == REFERENCE:
            return self.reference
        return self.line_up[int(self._drawn.integers(len(self.line_up)))]

    def act(self, observations: Float32Array, masks: BoolArray, actions: Float32Array) -> None:
        """Write the `actions` [B, A] of the matches in which snapshots sit."""
        players, random = self.prepare(), th.Generator()
        if not self._seated:
            players.seat(self._sits, (*self.line_up, self.reference))
            self._seated = True
        random.set_state(self._sampled)
        players.memory, players.random = self._memory, random
        players.act(observations, masks, self._begins, actions)
        self._memory, self._sampled = players.memory, random.get_state()
        self._begins[:] = False

    @property
    def learner(self) -> str:
        """The learner as a player: it is another one after each snapshot."""
        return LEARNER.format(len(self._pool) - 1)

    def ended(self, matches: Int64Array, scores: np.ndarray) -> None:
        """Count the games of `matches` [R], in which the learner had `scores` [R]."""
        for match, score in zip(matches.tolist(), scores.tolist(), strict=True):
            number = int(self._sits[match])
            opponent = self._kinds[match] if number == IDLE else snapshot_name(number)
            self.games.add(self.learner, opponent, score)
            self.running.add(opponent, score)
            if number != IDLE:
                self.recent.add(number, score)

    def state(self) -> dict[str, Any]:
        """Everything that the future depends on, but the pool."""
        return {
            "games": self.games.state(),
            "recent": self.recent.state(),
            "running": self.running.state(),
            "line_up": list(self.line_up),
            "reference": self.reference,
            "kinds": list(self._kinds),
            "sits": self._sits.copy(),
            "begins": self._begins.copy(),
            "memory": None if self._memory is None else self._memory.copy(),
            "drawn": self._drawn.bit_generator.state,
            "sampled": self._sampled.clone(),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave, with the pool as it was then."""
        self.games.resume(state["games"])
        self.recent.resume(state["recent"])
        self.running.resume(state["running"])
        self.line_up, self.reference = tuple(state["line_up"]), state["reference"]
        self._kinds, self._sits = list(state["kinds"]), state["sits"]
        self._begins, self._memory = state["begins"], state["memory"]
        self._drawn.bit_generator.state = state["drawn"]
        self._sampled = state["sampled"]
        self._players, self._seated = None, False
