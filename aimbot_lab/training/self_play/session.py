"""Self-play: past selves, who is drawn as an opponent, and what is reported of it."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th

from aimbot_lab.evaluation.matches import IDLE
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import MIN_EPISODES
from aimbot_lab.foundation.ratings import ratings_of
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import BatchWorld, BoolArray, Float32Array, Int64Array, WorldSpec
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.agents.agent_files import BestAgent
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.self_play.players import SnapshotPlayers, new_players
from aimbot_lab.training.self_play.pool import (
    GamesTable,
    Rated,
    RecentScores,
    RunningRating,
    Snapshot,
    SnapshotPool,
    Weights,
    rated_players,
    save_pool,
    snapshot_name,
)
from aimbot_lab.training.settings import (
    SamplingByNewest,
    SamplingByRating,
    SamplingByScore,
    SelfPlaySettings,
    TrainSettings,
)
from aimbot_lab.worlds.registry import type_of

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


Floats = npt.NDArray[np.float64]
MIN_SHARE = 0.02  # that each candidate keeps, or an even share where there are too many for that


class Standing(NamedTuple):
    """What is known of the snapshots, by their numbers; asked for where it is needed."""

    scores: Callable[[], Floats]  # [N] the learner's expected score against each
    points: Callable[[], Floats]  # [N] how far each one's rating is above the learner's


def candidates(settings: SelfPlaySettings, count: int) -> range:
    """Numbers of the snapshots that may be drawn, of `count`."""
    if isinstance(settings.sampling, SamplingByNewest):
        newest = ceil(settings.sampling.newest.share * count)
    else:
        newest = count if settings.window == "all" else min(settings.window, count)
    return range(count - newest, count)


def chances_of(settings: SelfPlaySettings, numbers: range, standing: Standing) -> Floats:
    """The chance of each of `numbers` to be drawn; they sum to 1.

    By the newest share: Bansal et al. 2018, "Emergent complexity via multi-agent competition",
    arXiv:1710.03748. Prioritised fictitious self-play: Vinyals et al. 2019, "Grandmaster level in
    StarCraft II using multi-agent reinforcement learning", doi:10.1038/s41586-019-1724-z.
    """
    sampling, chosen = settings.sampling, np.array(numbers)
    weights = np.ones(len(numbers))
    if isinstance(sampling, SamplingByScore):
        score = standing.scores()[chosen]
        hard = sampling.pfsp.weighting == "hard"
        weights = (1.0 - score) ** sampling.pfsp.power if hard else score * (1.0 - score)
    elif isinstance(sampling, SamplingByRating):
        apart = standing.points()[chosen] / sampling.rating.spread
        weights = np.exp(-0.5 * (apart**2 - (apart**2).min()))
    total = weights.sum()
    share = weights / total if total > 0 else np.full(len(numbers), 1.0 / len(numbers))
    least = min(MIN_SHARE, 1.0 / len(numbers))
    return np.asarray(least + (1.0 - least * len(numbers)) * share)


def drawn_line_up(
    settings: SelfPlaySettings, count: int, random: np.random.Generator, standing: Standing
) -> tuple[int, ...]:
    """The snapshots, of `count`, that matches are drawn from until the next swap: all different."""
    numbers = candidates(settings, count)
    chances = chances_of(settings, numbers, standing)
    some = min(settings.at_once, len(numbers))
    places = random.choice(len(numbers), size=some, replace=False, p=chances / chances.sum())
    return tuple(numbers[place] for place in sorted(places.tolist()))


class SelfPlay:
    """Takes snapshots, chooses who is met, and rates them."""

    def __init__(
        self, settings: SelfPlaySettings, env: WorldSettings, train: TrainSettings, *, seed: int
    ) -> None:
        self.settings, self.pool = settings, SnapshotPool()
        kind = type_of(env)
        share = settings.play_against_latest_model_ratio
        self._env: Any = kind.self_play_settings(env, share)
        self.past_selves = PastSelves(
            self.pool,
            kind.spec(self._env),
            train,
            played=kind.self_play_targets,
            seed=derive_seed(seed, "opponents"),
            initial_elo=settings.initial_elo,
        )
        self._drawn = np.random.default_rng(derive_seed(seed, "line-ups"))
        self._next_save, self._next_swap = settings.save_steps, settings.swap_steps
        self._mark: tuple[int, dict[str, Any]] = 0, {}

    def world(self) -> BatchWorld:
        """The world in which the learner meets itself, not yet reset."""
        return type_of(self._env).make_opposed(self._env, self.past_selves)

    def begin(self, weights: Weights, *, engine: str) -> None:
        """Have players ready, and the untrained agent as the first snapshot where none is."""
        self.past_selves.engine = engine
        if not len(self.pool):
            self._take(weights, step=0)
        if self._env.mirrored < self._env.num_envs:  # else no past self is ever met
            self.past_selves.prepare()

    def _take(self, weights: Weights, *, step: int) -> Snapshot:
        """The snapshot of `weights` in the pool, with the running rating of now."""
        snapshot = self.pool.take(weights, step=step)
        self.past_selves.running.take(snapshot.name)
        return snapshot

    def begin_rollout(
        self, weights: Weights, *, step: int, lesson_begins: bool = False
    ) -> dict[str, float] | None:
        """Take a snapshot and draw the next opponents where that is due at `step`.

        Where a lesson begins there is a snapshot in any case, the one that the lesson refers to.
        Gives the metrics of the snapshots' ratings where one was due.
        """
        is_due = step >= self._next_save
        metrics = self.rating() if is_due else None
        if is_due or lesson_begins:
            snapshot = self._take(weights, step=step)
            self._next_save = _next_multiple(step, self.settings.save_steps)
            if lesson_begins:
                self.past_selves.reference = snapshot.number
        if step >= self._next_swap:
            standing = Standing(self._scores, self._points)
            self.past_selves.line_up = drawn_line_up(
                self.settings, len(self.pool), self._drawn, standing
            )
            self._next_swap = _next_multiple(step, self.settings.swap_steps)
        self._mark = len(self.pool), self.past_selves.state()
        return metrics

    def _scores(self) -> np.ndarray:
        """The learner's expected score [N] against each snapshot, by its last games."""
        return self.past_selves.recent.expected(len(self.pool))

    def _points(self) -> np.ndarray:
        """How far the rating [N] of each snapshot is above the learner's."""
        names_of = [snapshot_name(number) for number in range(len(self.pool))]
        learner = self.past_selves.learner
        players = tuple(dict.fromkeys((*names_of, learner, *self.past_selves.games.players)))
        ratings = ratings_of(self.past_selves.games.counts(players))
        return ratings.above(players.index(learner))[: len(names_of)]

    def rating(self) -> dict[str, float] | None:
        """The learner since the last snapshot, rated by all games; None where it has none."""
        learner = self.past_selves.learner
        found = self._rated([learner])[learner]
        if not found.games:
            return None
        return {
            names.RATING: found.rating,
            names.RATING_LOWER: found.lower,
            names.RATING_UPPER: found.upper,
            names.RATING_GAMES: float(found.games),
            names.RATING_ML_AGENTS: self.running_rating,
        }

    def _rated(self, players: Sequence[str]) -> dict[str, Rated]:
        return rated_players(
            self.past_selves.games,
            players,
            anchor=snapshot_name(0),
            points=self.settings.initial_elo,
        )

    def best(self, otherwise: BestAgent) -> BestAgent:
        """The snapshot whose interval has the highest lower end, as the best agent.

        Of those that were met MIN_EPISODES times: of a few games, all won, the interval is too
        narrow. `otherwise` where that is none but the first, so that games say nothing.
        """
        rated = self._rated([one.name for one in self.pool.snapshots])
        met = [
            one
            for one in self.pool.snapshots
            if one.number == 0 or rated[one.name].games >= MIN_EPISODES
        ]
        if len(met) < 2:
            return otherwise
        best = max(met, key=lambda one: rated[one.name].lower)
        ends = rated[best.name]._asdict()
        about = {"step": best.step, "snapshot": best.name, **ends}
        return BestAgent.of(best.weights, about)

    @property
    def running_rating(self) -> float:
        """The learner's rating as ML-Agents keeps it, after its last game."""
        return self.past_selves.running.learner

    def parts(self) -> dict[str, Callable[[], bytes]]:
        """The parts of a checkpoint."""
        return self.pool.parts()

    def state(self) -> dict[str, Any]:
        """Everything that the future depends on, beside the parts."""
        return {
            "pool": self.pool.state(),
            "past_selves": self.past_selves.state(),
            "drawn": self._drawn.bit_generator.state,
            "next": [self._next_save, self._next_swap],
        }

    def resume(self, state: Mapping[str, Any], read_part: Callable[[str], bytes]) -> None:
        """Go on from what `state()` gave."""
        self.pool.resume(state["pool"], read_part)
        self.past_selves.resume(state["past_selves"])
        self._drawn.bit_generator.state = state["drawn"]
        self._next_save, self._next_swap = state["next"]

    def back_to_mark(self) -> None:
        """Forget what a rollout that was broken off has brought."""
        count, state = self._mark
        if state:
            self.pool.cut(count)
            self.past_selves.resume(state)

    def save(self, folder: Path) -> list[tuple[str, Path]]:
        """Files of pool and games in `folder`, each with the folder of the run that it is for."""
        return save_pool(self.pool, self.past_selves.games, folder)


def _next_multiple(step: int, every: int) -> int:
    return (step // every + 1) * every
