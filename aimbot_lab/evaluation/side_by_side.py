"""Matches of many pairs at once, so that who can acts in one call for all of them.

What comes of a pair depends on its two players and its fixture alone, whoever plays beside it.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from aimbot_lab.evaluation.matches import Fixture, MatchPlayer, Seated, longest, pair_seed
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Int64Array,
    StepBuffers,
    seats_of,
    step_buffers,
)

Pair = tuple[MatchPlayer, MatchPlayer]  # at home and away
SIDES = ("home", "away")


class Results(NamedTuple):
    """How the matches of a pair ended for the first of it."""

    wins: int
    draws: int
    losses: int


class SideSeat(NamedTuple):
    """A player in one side of all matches of a pair."""

    player: MatchPlayer
    seed: int


class Crew(Protocol):
    """Players that act together, in as many sides as they know.

    Sides have as many matches each: side k of G matches has the rows k G to (k + 1) G.
    """

    def sit(self, sides: Sequence[SideSeat], matches: int) -> Collection[int]:
        """The sides that it acts for from now on, in matches that are about to begin."""
        ...

    def act(
        self, observations: Float32Array, masks: BoolArray, starts: BoolArray, actions: Float32Array
    ) -> None:
        """Write the world actions [B, A] of its sides, for all rows' observations and masks."""
        ...

    def leave(self, rows: Int64Array) -> None:
        """In these `rows` nobody needs to act any more."""
        ...


class Nobody:
    """A crew without players."""

    def sit(self, sides: Sequence[SideSeat], matches: int) -> Collection[int]:
        """See `Crew`."""
        del sides, matches
        return ()

    def act(
        self, observations: Float32Array, masks: BoolArray, starts: BoolArray, actions: Float32Array
    ) -> None:
        """See `Crew`."""

    def leave(self, rows: Int64Array) -> None:
        """See `Crew`."""


class Arrays(NamedTuple):
    """What is seen and done in all rows, side by side; a pair's are views of it."""

    observations: Float32Array  # [B, D]
    masks: BoolArray  # [B, choices]
    starts: BoolArray  # [B] a match begins with the observations
    actions: Float32Array  # [B, A]

    def part(self, first: int, last: int) -> "Arrays":
        """Views of the rows from `first` to before `last`."""
        rows = slice(first, last)
        return Arrays(
            self.observations[rows], self.masks[rows], self.starts[rows], self.actions[rows]
        )


class _Match:
    """All matches of a pair: one after the other until the first in each row has ended."""

    def __init__(self, pair: Pair, fixture: Fixture, arrays: Arrays) -> None:
        self.pair, self._world, self._arrays = pair, fixture.world, arrays
        self._buffers: StepBuffers = step_buffers(fixture.world)._replace(
            observations=arrays.observations, finished=arrays.starts
        )
        self.players: dict[int, Seated] = {}  # by side, where no crew acts
        self._outcomes = np.full(self._world.num_envs, np.nan)
        self._world.reset(fixture.seed, arrays.observations)
        self._world.action_masks(arrays.masks)

    def step(self) -> Int64Array:
        """Have who is alone act, and take a step; the matches that now have ended."""
        rows, arrays = self._world.num_envs, self._arrays
        for side, player in self.players.items():
            own = arrays.part(side * rows, (side + 1) * rows)
            own.actions[:] = player.act(own.observations, own.masks, own.starts)
        batch = self._world.step(arrays.actions, self._buffers)
        self._world.action_masks(arrays.masks)
        if not batch:
            return np.zeros(0, np.int64)
        home = batch.agent == 0
        ended, outcomes = batch.row[home], batch.outcome[home]
        first = np.isnan(self._outcomes[ended])
        self._outcomes[ended[first]] = outcomes[first]
        return np.asarray(ended[first])

    @property
    def is_over(self) -> bool:
        """Whether each row's first match has ended."""
        return not np.isnan(self._outcomes).any()

    @property
    def results(self) -> Results:
        """How they ended: 1, 0 and -1."""
        return Results(*(int((self._outcomes == result).sum()) for result in (1, 0, -1)))


def play_pair(home: MatchPlayer, away: MatchPlayer, fixture: Fixture) -> Results:
    """Wins, draws and losses of `home` in the first episode of each row.

    Raises RunFailedError where one does not end.
    """
    return play_pairs([(home, away)], [fixture])[0]


def play_pairs(
    pairs: Sequence[Pair],
    fixtures: Sequence[Fixture],
    *,
    crew: Crew | None = None,
    on_pair: Callable[[Pair], None] = lambda _pair: None,
) -> list[Results]:
    """The same of each of `pairs`, all at once, each in a world of its own of as many matches.

    Players that `crew` knows act by it. `on_pair` is called when a pair is through.
    """
    worlds = [fixture.world for fixture in fixtures]
    arrays, crew = _new_arrays(worlds), crew or Nobody()
    seats = seats_of(worlds[0])
    matches = [
        _Match(pair, fixture, arrays.part(k * seats, (k + 1) * seats))
        for k, (pair, fixture) in enumerate(zip(pairs, fixtures, strict=True))
    ]
    _seat(matches, fixtures, crew)
    running = dict(enumerate(matches))
    for _ in range(longest(worlds[0])):
        crew.act(*arrays)
        for k, match in list(running.items()):
            ended = match.step()
            if match.is_over:
                del running[k]
                on_pair(match.pair)
            if len(ended):
                _dismiss(crew, arrays.actions, k * seats + ended, worlds[k].num_envs)
        if not running:
            return [match.results for match in matches]
    home, away = next(iter(running.values())).pair
    raise RunFailedError(f"{home.name} and {away.name}: a match does not end")


def _new_arrays(worlds: Sequence[BatchWorld]) -> Arrays:
    """Arrays for all seats of `worlds`, which are alike."""
    rows, spec = sum(map(seats_of, worlds)), worlds[0].spec
    width = len(spec.branches) + spec.continuous
    return Arrays(
        observations=np.zeros((rows, len(spec.observation_names)), np.float32),
        masks=np.ones((rows, sum(spec.branches)), np.bool_),
        starts=np.ones(rows, np.bool_),
        actions=np.zeros((rows, width), np.float32),
    )


def _seat(matches: Sequence[_Match], fixtures: Sequence[Fixture], crew: Crew) -> None:
    """Both players of each pair in their seats, remembering nothing."""
    sides = [
        SideSeat(player, pair_seed(fixture.seed, home.name, away.name, side))
        for (home, away), fixture in zip((one.pair for one in matches), fixtures, strict=True)
        for player, side in zip((home, away), SIDES, strict=True)
    ]
    known = set(crew.sit(sides, fixtures[0].world.num_envs))
    for k, side in enumerate(sides):
        if k not in known:
            matches[k // 2].players[k % 2] = side.player.sit(side.seed)


def _dismiss(crew: Crew, actions: Float32Array, home: Int64Array, matches: int) -> None:
    """Let nobody of the crew act in matches, of which these are the rows at home."""
    rows = np.concatenate([home, home + matches])
    actions[rows] = 0.0
    crew.leave(rows)
