"""The players that runs send into a league."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aimbot_lab.evaluation.matches import MatchPlayer
from aimbot_lab.experiment.analysis.matches import fetch_snapshots, unlike_settings
from aimbot_lab.experiment.runs.agents import TrackedAgent, fetch_agent
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.run_summary import BEST, LAST
from aimbot_lab.training.self_play.seated_agent import agent_player
from aimbot_lab.worlds.registry import type_of

SHORT_ID = 8


@dataclass(frozen=True)
class Entrants:
    """Players of runs in the world that all were trained in."""

    env: WorldSettings  # with one agent that learns
    players: tuple[MatchPlayer, ...]
    run_ids: tuple[str, ...]
    left_out: tuple[str, ...]  # snapshots that can't be read, each with the reason


def entrants_of(
    runs: Sequence[str], *, snapshots: int | None, data_folder: DataFolder, tracking_uri: str | None
) -> Entrants:
    """Last and best agent of each of `runs`, and of self-play so many of its snapshots.

    Snapshots are evenly spaced, first and last always; None: the last agents alone. Raises
    ConfigurationError where a run is named twice, or was not trained in the same world of two
    sides, LabError where a run has no agent.
    """
    at: dict[str, Any] = {"data_folder": data_folder, "tracking_uri": tracking_uri}
    found = [fetch_agent(run, LAST, **at) for run in runs]
    check_worlds(found)
    players: list[MatchPlayer] = []
    left_out: list[str] = []
    for last in found:
        prefix = f"{last.run.run_id[:SHORT_ID]}:" if len(found) > 1 else ""
        if snapshots is None:
            players.append(_player(last, prefix))
            continue
        own, damaged = _pool(last, prefix, snapshots, at)
        players += [*own, _player(last, prefix), *_best(last, prefix, at)]
        left_out += damaged
    env = type_of(found[0].config.env).single_settings(found[0].config.env)
    ids = tuple(one.run.run_id for one in found)
    return Entrants(env, tuple(players), ids, tuple(left_out))


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


def _pool(
    last: TrackedAgent, prefix: str, most: int, at: Mapping[str, Any]
) -> tuple[list[MatchPlayer], Sequence[str]]:
    """Some snapshots of the run, and why others can't be read; none of a run without self-play."""
    found = fetch_snapshots(last, lambda count: spread(count, most), **at)
    players: list[MatchPlayer] = [
        agent_player(f"{prefix}{name}", agent, step=step, run=last.run.run_id)
        for name, step, agent in found.whole
    ]
    return players, found.damaged


def spread(count: int, most: int) -> list[int]:
    """At most so many of `count` places, evenly spaced, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, most)})
