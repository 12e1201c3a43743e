"""The players that runs send into a league."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aimbot_lab.experiment.runs.tracked_agent import TrackedAgent, fetch_agent
from aimbot_lab.foundation.errors import ConfigurationError, LabError, StoreError
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.league.players import LeaguePlayer, agent_player
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.agent_names import BEST, LAST
from aimbot_lab.tracking.runs.history import download_artifact
from aimbot_lab.training.self_play.pool_files import (
    POOL_FOLDER,
    STEPS_NAME,
    SUFFIX,
    read_snapshot,
    read_steps,
)
from aimbot_lab.worlds.registry import as_dict, type_of

UNLIKE = ("num_envs", "threads", "learner")  # settings in which runs may differ
SHORT_ID = 8


@dataclass(frozen=True)
class Entrants:
    """Players of runs in the world that all were trained in."""

    env: WorldSettings  # with one agent that learns
    players: tuple[LeaguePlayer, ...]
    run_ids: tuple[str, ...]
    left_out: tuple[str, ...]  # snapshots that can't be read, each with the reason


def entrants_of(
    runs: Sequence[str], *, snapshots: int, data_folder: DataFolder, tracking_uri: str | None
) -> Entrants:
    """Last and best agent of each of `runs`, and of self-play so many of its snapshots.

    Snapshots are evenly spaced, first and last always. Raises ConfigurationError where a run is
    named twice, or was not trained in the same world of two sides, LabError where a run has no
    agent.
    """
    at: dict[str, Any] = {"data_folder": data_folder, "tracking_uri": tracking_uri}
    found = [fetch_agent(run, LAST, **at) for run in runs]
    check_worlds(found)
    players: list[LeaguePlayer] = []
    left_out: list[str] = []
    for last in found:
        prefix = f"{last.run.run_id[:SHORT_ID]}:" if len(found) > 1 else ""
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
        differing = _differences(env, first.config.env)
        if differing:
            what = f"was trained with another {', '.join(differing)} than run {ids[0][:SHORT_ID]}"
            raise ConfigurationError(f"{shown}: {what}")


def _differences(one: WorldSettings, other: WorldSettings) -> list[str]:
    if one.world != other.world:
        return ["env.world"]
    mine, theirs = as_dict(one), as_dict(other)
    return [f"env.{key}" for key in mine if key not in UNLIKE and mine[key] != theirs.get(key)]


def _player(one: TrackedAgent, prefix: str) -> LeaguePlayer:
    name, agent = f"{prefix}{one.which}", one.saved.agent
    return agent_player(name, agent, step=one.step, run=one.run.run_id)


def _best(last: TrackedAgent, prefix: str, at: Mapping[str, Any]) -> list[LeaguePlayer]:
    """The best agent, where there is one that is not the last."""
    try:
        best = fetch_agent(last.run.run_id, BEST, **at)
    except LabError:
        return []
    return [] if best.step == last.step else [_player(best, prefix)]


def _pool(
    last: TrackedAgent, prefix: str, most: int, at: Mapping[str, Any]
) -> tuple[list[LeaguePlayer], list[str]]:
    """Some snapshots of the run, and why others can't be read; none of a run without self-play."""
    if last.config.self_play is None:
        return [], []

    def fetch(name: str) -> Path:
        return download_artifact(name=f"{POOL_FOLDER}/{name}", run_id=last.run.run_id, **at)

    shown = f"run {last.run.run_id[:SHORT_ID]}"
    try:
        listed = read_steps(fetch(STEPS_NAME).read_text(encoding="utf-8"))
    except (StoreError, OSError, ValueError) as error:
        return [], [f"{shown}: {POOL_FOLDER}: {error}"]
    players, damaged = [], []
    for place in spread(len(listed), most):
        name, step = listed[place]
        try:
            agent = read_snapshot(fetch(name + SUFFIX), last.saved.train, last.saved.agent.spec)
        except LabError as error:
            damaged.append(f"{shown}: {error}")
            continue
        players.append(agent_player(f"{prefix}{name}", agent, step=step, run=last.run.run_id))
    return players, damaged


def spread(count: int, most: int) -> list[int]:
    """At most so many of `count` places, evenly spaced, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, most)})
