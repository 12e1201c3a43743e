"""The duel as a world of one agent, who plays home against scripts, past selves and itself.

What scripted players remember and draw is kept by match, so that a match goes on alike in a world
of any number of matches, and in one that was restored.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.argument_checks import (
    BOOL,
    FLOAT32,
    MisuseError,
    check_buffers,
    check_writable,
    checked_row,
)
from aimbot_lab.foundation.episodes import UNCOUNTED, Cell, EpisodeBatch
from aimbot_lab.foundation.kernels.rng import GOLDEN, MIX_1, MIX_2
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Int64Array,
    Picture,
    Scenario,
    StepBuffers,
    WorldSpec,
    step_buffers,
)
from aimbot_lab.foundation.world_type import Opponents
from aimbot_lab.worlds.arena.world_type import PLAYER, GreedyAgent
from aimbot_lab.worlds.duel.core.state import ACTION_COLUMNS, AGENTS, BRANCHES, KINDS, MOUSE, SELF
from aimbot_lab.worlds.duel.core.step import MASKS
from aimbot_lab.worlds.duel.duel import CELLS, Duel, checked_actions, fingerprint
from aimbot_lab.worlds.duel.players import MEMORY, Aimbot
from aimbot_lab.worlds.duel.settings import DuelSettings, one_match
from aimbot_lab.worlds.duel.spec import duel_spec, targets_of

RANDOM, GREEDY, AIMBOT = (KINDS.index(name) for name in ("random", "greedy", "aimbot"))
Words = npt.NDArray[np.uint64]


class ScriptedOpponents:
    """Plays the away seats of B matches, each by the kind of its match.

    `memory` [B, MEMORY] is the aimbot's; `keys` [B] are the seeds of random players.
    """

    def __init__(self, spec: WorldSpec, settings: DuelSettings) -> None:
        self._spec, matches = spec, settings.num_envs
        self._aimbot = Aimbot(spec, settings, 0)
        self._greedy = GreedyAgent(
            spec, rays=settings.rays, turn_per_unit=settings.mouse_factor, enemy=PLAYER
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
        the decisions made in them. Zeros where none of these sits.
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
        """Go on from `arrays`. Raises MisuseError where they are of another number of matches."""
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


OF_OPPONENTS, SEEN = "opponents.", "opponents.seen"  # names in a snapshot


class OpposedWorld:
    """Matches in which one agent learns, from home and in mirrored matches from both seats.

    Of B = `settings.num_envs` matches the first `mirrored` are the learner's own in both seats. The
    away seats of the others are played by the scripts that are targets, and by `opponents` where a
    target is a past self. Rows are the home seats, then the away seats of mirrored matches: the
    first B + `mirrored` seats of the duel. Who sits in a match is drawn where it begins, by the
    weights of the targets.
    """

    def __init__(
        self, settings: DuelSettings, *, opponents: Opponents | None = None, mirrored: int = 0
    ) -> None:
        self.settings, self.spec = settings, duel_spec(settings)
        self.mirrored, self._matches = mirrored, settings.num_envs
        self.num_envs = self._matches + mirrored
        self.duel = Duel(settings, kinds=targets_of(settings))
        # What the snapshot of a match says where both of its agents are played from outside.
        self.match_fits = fingerprint(one_match(settings), self.duel.tables.layouts)
        self._scripts, self._opponents = ScriptedOpponents(self.spec, settings), opponents
        self._buffers = step_buffers(self.duel)
        self._seen = np.zeros_like(self._buffers.observations[self._matches :])  # by the away ones
        self._actions = np.zeros((AGENTS * self._matches, ACTION_COLUMNS), np.float32)
        self._masks = np.zeros((AGENTS * self._matches, MASKS), np.bool_)
        self._masked = False  # whether these are of the present state
        self._shape = self.num_envs, self._seen.shape[1]

    @property
    def keep_endings(self) -> bool:
        """Whether steps keep how each row's last episode ended."""
        return self.duel.keep_endings

    @keep_endings.setter
    def keep_endings(self, keep: bool) -> None:
        self.duel.keep_endings = keep

    def match_actions(self, match: int) -> Float32Array:
        """What home and away did in the last step of `match`, [2, 4]."""
        return self._actions[[match, match + self._matches]]

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return self.duel.scenario_number

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every match from now on is drawn from.

        Raises ConfigurationError where it names what the duel does not have.
        """
        return self.duel.set_scenario(scenario)

    def reset(self, seed: int, observations: Float32Array) -> None:
        """Start first matches from `seed`; writes `observations` [B + mirrored, D]."""
        check_writable(observations, "observations", shape=self._shape, dtype=FLOAT32)
        if self.scenario_number == 0:
            raise MisuseError("the world has nothing to draw matches from: set_scenario first")
        self.duel.reset(seed, self._buffers.observations)
        self._scripts.reset(derive_seed(int(seed), "opponents"))
        observations[:] = self._buffers.observations[: self.num_envs]
        self._seen[:] = self._buffers.observations[self._matches :]
        self._masked = False
        if self._opponents is not None:
            self._opponents.begin(self._matches)
            self._seat(np.arange(self._matches))

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes of the learner that ended in this step; writes `buffers`.

        `actions` [B + mirrored, 4]. Raises ActionError, with the world as it was, for one that does
        not exist.
        """
        self.duel.check_started()
        check_buffers(buffers, self._shape)
        own = self.num_envs
        self._actions[:own] = checked_actions(actions, self._matches, seats=own)
        self._actions[own:] = self._answers()[self.mirrored :]
        batch = self.duel.step(self._actions, self._buffers)
        self._masked = False
        for name, array in buffers._asdict().items():
            if name != "final_observations":
                array[:] = getattr(self._buffers, name)[:own]
        self._seen[:] = self._buffers.observations[self._matches :]
        ended = np.flatnonzero(buffers.finished)
        buffers.final_observations[ended] = self._buffers.final_observations[ended]
        if batch and self._opponents is not None:
            self._tell(batch)
        return learner_episodes(batch, self._matches, mirrored=self.mirrored)

    def _answers(self) -> Float32Array:
        """Actions [B, 4] of the away agents; those of mirrored matches mean nothing."""
        state = self.duel.state
        kinds = state.kind
        if self.mirrored:
            kinds = kinds.copy()
            kinds[: self.mirrored] = 0
        steps = state.seats.decisions[self._matches :]
        actions = self._scripts.act(self._seen, kinds, episode=state.episode, step=steps)
        if self._opponents is not None:
            if self._opponents.needs_masks:
                self._mask()
            self._opponents.act(self._seen, self._masks[self._matches :], actions)
        return actions

    def _tell(self, batch: EpisodeBatch) -> None:
        """Tell the opponents how their matches ended, and which have begun."""
        home = slice(len(batch.row) // AGENTS)
        played = np.flatnonzero(batch.row[home] >= self.mirrored)
        assert self._opponents is not None
        self._opponents.ended(batch.row[played], batch.columns["score"][played])
        self._seat(batch.row[played])

    def _seat(self, begun: Int64Array) -> None:
        """Have the opponents choose who plays the matches that have `begun`."""
        assert self._opponents is not None
        matches = begun[begun >= self.mirrored]
        self._opponents.seat(matches, [KINDS[kind] for kind in self.duel.state.kind[matches]])

    def _mask(self) -> None:
        """Have the masks of all seats be of the present state."""
        if not self._masked:
            self.duel.action_masks(self._masks)
            self._masked = True

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [B + mirrored, 8] of the learner, as the duel has them."""
        check_writable(masks, "masks", shape=(self.num_envs, MASKS), dtype=BOOL)
        self._mask()
        masks[:] = self._masks[: self.num_envs]

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """The match of `row` from above, [480, 480, 3], or how it last ended."""
        return self.duel.draw(checked_row(row, self.num_envs) % self._matches, ending=ending)

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of everything that the future depends on, by name."""
        return {name: array.copy() for name, array in self.arrays().items()}

    def arrays(self) -> Mapping[str, np.ndarray]:
        """What a snapshot copies, by name; to be read and not written."""
        own = {OF_OPPONENTS + name: array for name, array in self._scripts.arrays().items()}
        return {**self.duel.arrays(), **own, SEEN: self._seen}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot` of a world with the same settings, bit for bit."""
        own = {name for name in self.arrays() if name.startswith(OF_OPPONENTS)}
        missing = sorted(own - snapshot.keys())
        if missing:
            raise MisuseError(f"snapshot: {missing[0]} is missing")
        seen = snapshot[SEEN]
        if seen.shape != self._seen.shape or seen.dtype != self._seen.dtype:
            raise MisuseError(f"snapshot: {SEEN} is {seen.dtype} {seen.shape}")
        mine = {name: snapshot[OF_OPPONENTS + name] for name in self._scripts.arrays()}
        self.duel.check_restorable({k: v for k, v in snapshot.items() if k not in own})
        self._scripts.restore(mine)
        self.duel.restore({k: v for k, v in snapshot.items() if k not in own})
        self._seen[:] = seen
        self._masked = False


def learner_episodes(batch: EpisodeBatch, matches: int, *, mirrored: int) -> EpisodeBatch:
    """Of the episodes of both agents those of the learner, in rows of a world of one agent.

    It plays home, and both sides of mirrored matches. Rows are the home seats of all `matches`,
    then the away seats of the first `mirrored`. Episodes of these matches are of kind self and of a
    scenario that counts for no lesson.
    """
    running = batch._replace(
        running_order=batch.running_order[: matches + mirrored],
        running_scenario=_running(batch.running_scenario, matches, mirrored),
    )
    if not batch:  # as in most steps
        return running
    ended = batch.row[: len(batch.row) // AGENTS]
    both = np.flatnonzero(ended < mirrored)
    kept = running.some(np.concatenate([np.arange(len(ended)), len(ended) + both]))
    rows = np.concatenate([ended, matches + ended[both]])
    own = (rows < mirrored) | (rows >= matches)
    return kept._replace(
        row=rows,
        agent=np.zeros(len(rows), np.int64),
        scenario=np.where(own, UNCOUNTED, kept.scenario),
        cell=tuple(
            _of_self(cell) if of_own else cell for cell, of_own in zip(kept.cell, own, strict=True)
        ),
    )


def _of_self(cell: Cell | None) -> Cell | None:
    return None if cell is None else CELLS[KINDS.index(SELF), cell.difficulty]


def _running(scenario: Int64Array, matches: int, mirrored: int) -> Int64Array:
    if not mirrored:
        return scenario[:matches]
    running = scenario[: matches + mirrored].copy()
    running[:mirrored] = running[matches:] = UNCOUNTED
    return running
