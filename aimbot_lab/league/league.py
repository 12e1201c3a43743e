"""A league of runs: gathered, played, each pair in the same matches, and rated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.evaluation.episodes import FIRST_SEED
from aimbot_lab.evaluation.matches import MatchPlayer, play_pairs, script_player
from aimbot_lab.experiment.analysis.matches import SHORT_ID, fetch_snapshots, unlike_settings
from aimbot_lab.experiment.runs.agents import TrackedAgent, fetch_agent
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import BatchWorld, Scenario
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.league.result import League, rated
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.run_summary import BEST, LAST
from aimbot_lab.training.self_play.players import agent_player, by_kernels
from aimbot_lab.worlds.registry import make_world, type_of

MOST = 32_768  # matches at once, unless a single pair has more


def check_worlds(found: Sequence[TrackedAgent]) -> None:
    """Raise ConfigurationError, naming a run, where not all can play each other."""
    ids = [one.run.run_id for one in found]
    for run_id in ids:
        if ids.count(run_id) > 1:
            raise ConfigurationError(f"run {run_id[:SHORT_ID]} is named twice")
    first = found[0]
    for one in found:
        shown, env = f"run {one.run.run_id[:SHORT_ID]} ({one.run.name})", one.config.env
        if not type_of(env).self_play_targets:
            raise ConfigurationError(f"{shown}: world {env.world} has no matches of two agents")
        differing = unlike_settings(env, first.config.env)
        if differing:
            what = f"was trained with another {', '.join(differing)} than run {ids[0][:SHORT_ID]}"
            raise ConfigurationError(f"{shown}: {what}")


def _player(one: TrackedAgent, prefix: str) -> MatchPlayer:
    name, agent = f"{prefix}{one.which}", one.saved.agent
    return agent_player(name, agent, step=one.step, run=one.run.run_id)


def _best(last: TrackedAgent, prefix: str, at: Mapping[str, Any]) -> list[MatchPlayer]:
    """The best agent, where there is one that is not the last."""
    try:
        best = fetch_agent(last.run.run_id, BEST, **at)
    except LabError:
        return []
    return [] if best.step == last.step else [_player(best, prefix)]


def spread(count: int, most: int) -> list[int]:
    """At most `most` of `count` places, evenly spaced, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, most)})


def play_all(
    players: Sequence[MatchPlayer],
    new_world: Callable[[], BatchWorld],
    seed: int,
    *,
    on_pair: Callable[[str], None],
) -> np.ndarray:
    """[P, P, 3] wins, draws and losses of each of `players` against each.

    Every pair plays the first episode of each row of a world of its own, which begins by `seed`, so
    alike for all of them. As many pairs as have room play side by side.
    """
    pairs = list(combinations(range(len(players)), 2))
    counts = np.zeros((len(players), len(players), 3), np.int64)
    worlds = [new_world()]
    at_once = max(1, min(len(pairs), MOST // worlds[0].num_envs))
    worlds += [new_world() for _ in range(at_once - 1)]
    for first in range(0, len(pairs), at_once):
        some = pairs[first : first + at_once]
        found = play_pairs(
            [(players[one], players[other]) for one, other in some],
            worlds[: len(some)],
            seed=seed,
            seat=by_kernels,
            on_pair=lambda pair: on_pair(f"{pair[0].name} - {pair[1].name}"),
        )
        for (one, other), (wins, draws, losses) in zip(some, found, strict=True):
            counts[one, other] = wins, draws, losses
            counts[other, one] = losses, draws, wins
    return counts


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
    run_ids: tuple[str, ...]
    left_out: tuple[str, ...]  # snapshots that can't be read, each with the reason

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
    """The league of `runs`, which have learned in the same world of two sides, before its games.

    Players are the last and the best agent of each run, of self-play some of its snapshots, evenly
    spaced, first and last always, and the world's scripts. Raises ConfigurationError where a run is
    named twice, or was not trained in such a world, and for a difficulty that there is not,
    LabError where a run has no agent.
    """
    at: dict[str, Any] = {"data_folder": data_folder, "tracking_uri": tracking_uri}
    found = [fetch_agent(run, LAST, **at) for run in runs]
    check_worlds(found)
    players: list[MatchPlayer] = []
    left_out: list[str] = []
    most = request.snapshots
    for last in found:
        prefix = f"{last.run.run_id[:SHORT_ID]}:" if len(found) > 1 else ""
        if most is None:
            players.append(_player(last, prefix))
            continue
        own, damaged = fetch_snapshots(last, lambda count: spread(count, most), **at, prefix=prefix)
        players += [*own, _player(last, prefix), *_best(last, prefix, at)]
        left_out += damaged
    kind = type_of(found[0].config.env)
    env = kind.single_settings(found[0].config.env)
    single, scripts = make_world(env, request.games), kind.baselines(env)
    players += [script_player(name, scripts[name], single) for name in scripts]
    new_world = partial(_matches, env, request.games, _scenario(env, request))
    ids = tuple(one.run.run_id for one in found)
    return PlannedLeague(request, tuple(players), new_world, ids, tuple(left_out))


def play_league(plan: PlannedLeague, *, on_pair: Callable[[str], None]) -> League:
    """The league of `plan`; `on_pair` is called after each pair."""
    request, left_out = plan.request, plan.left_out
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
