"""A league of runs: gathered, played and rated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aimbot_lab.evaluation.episodes import FIRST_SEED
from aimbot_lab.evaluation.matches import Fixture, MatchPlayer, script_player
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
    fixture: Fixture
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
    fixture = Fixture(_matches(entrants.env, request), FIRST_SEED + request.seed)
    return PlannedLeague(request, tuple(players), fixture, entrants)


def play_league(plan: PlannedLeague, *, on_pair: Callable[[str], None]) -> League:
    """The league of `plan`; `on_pair` is called after each pair."""
    counts = play_all(plan.players, plan.fixture, on_pair=on_pair)
    seed, left_out = plan.request.seed, plan.entrants.left_out
    return rated(plan.players, counts, seed=seed, left_out=left_out)


def _matches(env: WorldSettings, request: LeagueRequest) -> BatchWorld:
    """The world of two agents in which all pairs meet."""
    kind = type_of(env)
    settings = kind.match_settings(env)
    levels: Mapping[str, int] = kind.targets(settings)
    target, count = next(iter(levels.items()))
    chosen = {}
    if request.difficulty is not None:
        if not 1 <= request.difficulty <= count:
            raise ConfigurationError(
                f"--difficulty: there is none {request.difficulty}; there are 1 to {count}"
            )
        one = tuple(float(level == request.difficulty) for level in range(1, count + 1))
        chosen = {target: one}
    world = make_world(settings, request.games)
    world.set_scenario(Scenario({target: 1.0}, chosen))
    return world
