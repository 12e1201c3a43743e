"""A league of runs: gathered, played and rated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from aimbot_lab.evaluation.episodes import FIRST_SEED
from aimbot_lab.evaluation.matches import MatchPlayer, script_player
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import BatchWorld, Scenario
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.league.entrants import Entrants, entrants_of
from aimbot_lab.league.games import play_all
from aimbot_lab.league.result import League, rated
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.worlds.registry import make_world, type_of


@dataclass(frozen=True)
class LeagueRequest:
    """How a league is played."""

    games: int  # a pair
    snapshots: int | None  # of each run, at most; None: runs send their last agent alone
    seed: int
    difficulty: int | None = None  # of all matches; None: all alike


class PlannedLeague(NamedTuple):
    """A league before its games."""

    request: LeagueRequest
    players: tuple[MatchPlayer, ...]
    new_world: Callable[[], BatchWorld]  # in which a pair meets
    entrants: Entrants

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self.players) * (len(self.players) - 1) // 2


def plan_league(
    runs: Sequence[str],
    request: LeagueRequest,
    *,
    data_folder: DataFolder,
    tracking_uri: str | None = None,
) -> PlannedLeague:
    """Who plays whom. Raises as `entrants_of`, and for a difficulty that there is not."""
    entrants = entrants_of(
        runs, snapshots=request.snapshots, data_folder=data_folder, tracking_uri=tracking_uri
    )
    kind = type_of(entrants.env)
    single = make_world(entrants.env, request.games)
    scripts = kind.baselines(entrants.env)
    players = [*entrants.players, *(script_player(name, scripts[name], single) for name in scripts)]
    new_world = partial(_matches, entrants.env, request.games, _scenario(entrants.env, request))
    return PlannedLeague(request, tuple(players), new_world, entrants)


def play_league(plan: PlannedLeague, *, on_pair: Callable[[str], None]) -> League:
    """The league of `plan`; `on_pair` is called after each pair."""
    request, left_out = plan.request, plan.entrants.left_out
    counts = play_all(plan.players, plan.new_world, FIRST_SEED + request.seed, on_pair=on_pair)
    return rated(plan.players, counts, seed=request.seed, left_out=left_out)


def _scenario(env: WorldSettings, request: LeagueRequest) -> Scenario:
    """What matches are drawn from. Raises ConfigurationError for a difficulty there is not."""
    kind = type_of(env)
    levels: Mapping[str, int] = kind.targets(kind.match_settings(env))
    target, count = next(iter(levels.items()))
    if request.difficulty is None:
        return Scenario({target: 1.0})
    if not 1 <= request.difficulty <= count:
        raise ConfigurationError(
            f"--difficulty: there is none {request.difficulty}; there are 1 to {count}"
        )
    one = tuple(float(level == request.difficulty) for level in range(1, count + 1))
    return Scenario({target: 1.0}, {target: one})


def _matches(env: WorldSettings, games: int, scenario: Scenario) -> BatchWorld:
    """A world of two agents in which a pair meets, one thread's work."""
    world = make_world(type_of(env).match_settings(env), games, one_thread=True)
    world.set_scenario(scenario)
    return world
