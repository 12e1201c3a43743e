"""Matches of tracked agents: snapshots read back, and a score for each opponent and difficulty."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aimbot_lab.evaluation.episodes import cell_scenario, evaluation_seed
from aimbot_lab.evaluation.matches import MatchPlayer, play_pairs, script_player
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.experiment.runs.agents import TrackedAgent, fetch_agent
from aimbot_lab.foundation.episodes import Cell, wilson
from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.foundation.shown_text import shown_rate
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact
from aimbot_lab.tracking.tracker import BEST
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.self_play.players import agent_player
from aimbot_lab.training.self_play.pool import (
    POOL_FOLDER,
    STEPS_NAME,
    SUFFIX,
    read_snapshot,
    read_steps,
)
from aimbot_lab.worlds.registry import as_dict, make_world, type_of

SHORT_ID = 8
UNLIKE = ("num_envs", "threads", "learner")  # settings in which worlds of one match may differ


class TrackedPool:
    """All snapshots of the run that `last` is of, among the run's artifacts."""

    def __init__(
        self, last: TrackedAgent, *, data_folder: DataFolder, tracking_uri: str | None = None
    ) -> None:
        self._saved, self._run_id = last.saved, last.run.run_id
        self._data_folder, self._tracking_uri = data_folder, tracking_uri

    def _fetch(self, name: str) -> Path:
        path = f"{POOL_FOLDER}/{name}"
        return download_artifact(
            self._data_folder, self._run_id, name=path, tracking_uri=self._tracking_uri
        )

    def listed(self) -> list[tuple[str, int]]:
        """Names and steps. Raises LabError, which says why, where their list can't be read."""
        try:
            return read_steps(self._fetch(STEPS_NAME).read_text(encoding="utf-8"))
        except (StoreError, OSError, ValueError) as error:
            raise LabError(str(error)) from error

    def read(self, name: str) -> Agent:
        """One of them. Raises LabError where it can't be read."""
        return read_snapshot(self._fetch(name + SUFFIX), self._saved.train, self._saved.agent.spec)


def fetch_snapshots(
    last: TrackedAgent,
    chosen: Callable[[int], Iterable[int]],
    *,
    data_folder: DataFolder,
    tracking_uri: str | None = None,
    prefix: str = "",
) -> tuple[list[MatchPlayer], list[str]]:
    """Of the N snapshots of the run that `last` is of those at the places `chosen(N)`.

    As players, whose names begin with `prefix`, and why others can't be read, each with its run.
    None of a run without self-play.
    """
    whole: list[MatchPlayer] = []
    damaged: list[str] = []
    if last.config.self_play is None:
        return whole, damaged
    pool = TrackedPool(last, data_folder=data_folder, tracking_uri=tracking_uri)
    run = last.run.run_id
    try:
        listed = pool.listed()
    except LabError as error:
        return whole, [f"run {run[:SHORT_ID]}: {POOL_FOLDER}: {error}"]
    for place in chosen(len(listed)):
        name, step = listed[place]
        try:
            whole.append(agent_player(f"{prefix}{name}", pool.read(name), step=step, run=run))
        except LabError as error:
            damaged.append(f"run {run[:SHORT_ID]}: {error}")
    return whole, damaged


@dataclass(frozen=True)
class MatchScore:
    """How an agent did against an opponent."""

    opponent: str
    difficulty: int  # 0: all of them
    games: int
    wins: int
    draws: int
    score: float  # mean, a draw being half a win
    lower: float  # Wilson interval at 95 %, with draws a little too wide
    upper: float


@dataclass(frozen=True)
class MatchPlan:
    """Who is met, where, and how often."""

    env: WorldSettings  # of any number of learners
    opponents: tuple[MatchPlayer, ...]
    episodes: int  # of each opponent at each difficulty
    seed: int
    left_out: tuple[str, ...] = ()  # opponents that can't be read, each with the reason

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The match at each of its difficulties."""
        kind = type_of(self.env)
        levels = kind.targets(kind.match_settings(self.env))
        return tuple(Cell(name, k) for name, count in levels.items() for k in range(1, count + 1))

    @property
    def parts(self) -> int:
        """How often `on_cell` of `play_matches` is called."""
        return len(self.opponents) * len(self.cells)


def opponents_of(
    agent: TrackedAgent,
    *,
    episodes: int,
    seed: int,
    scripts: bool,
    data_folder: DataFolder,
    tracking_uri: str | None = None,
) -> MatchPlan | None:
    """Matches of a run by self-play: against scripts, its first snapshot and its best agent.

    None of another run.
    """
    env = agent.config.env
    if agent.config.self_play is None:
        return None
    kind = type_of(env)
    world = make_world(kind.single_settings(env), episodes)
    made = kind.baselines(env) if scripts else {}
    players = [script_player(name, make, world) for name, make in made.items()]
    at: dict[str, Any] = {"data_folder": data_folder, "tracking_uri": tracking_uri}
    run = agent.run.run_id
    first, left_out = fetch_snapshots(agent, lambda count: range(min(count, 1)), **at)
    players += first
    if agent.which != BEST:
        try:
            best = fetch_agent(run, BEST, **at)
            players.append(agent_player(BEST, best.saved.agent, step=best.step, run=run))
        except LabError as error:
            left_out.append(str(error))
    return MatchPlan(env, tuple(players), episodes, seed, tuple(left_out))


def as_match_player(agent: TrackedAgent, temperature: Temperature | None = None) -> MatchPlayer:
    """`agent` as a player, by the beginning of its run and its own name."""
    run = agent.run.run_id
    name = f"{run[:8]}:{agent.which}"
    return agent_player(name, agent.saved.agent, step=agent.step, run=run, temperature=temperature)


def play_matches(
    agent: TrackedAgent,
    plan: MatchPlan,
    temperature: Temperature | None,
    *,
    on_cell: Callable[[str, str], None],
) -> tuple[MatchScore, ...]:
    """Scores of `agent` against each opponent: at each difficulty, then over all.

    All meet the same starts. `on_cell` is called after each with the opponent and the cell.
    """
    player = as_match_player(agent, temperature)
    world = make_world(type_of(plan.env).match_settings(plan.env), plan.episodes)
    found: list[MatchScore] = []
    for opponent in plan.opponents:
        own = []
        for cell in plan.cells:
            world.set_scenario(cell_scenario(cell, world.spec.difficulties[cell.target]))
            seed = evaluation_seed(plan.seed, cell)
            ((wins, draws, losses),) = play_pairs([(player, opponent)], [world], seed=seed)
            games = wins + draws + losses
            own.append(_score(opponent.name, cell.difficulty, games=games, wins=wins, draws=draws))
            on_cell(f"against {opponent.name}", cell.shown)
        found += own
        if len(own) > 1:
            games, wins, draws = (
                sum(getattr(one, name) for one in own) for name in ("games", "wins", "draws")
            )
            found.append(_score(opponent.name, 0, games=games, wins=wins, draws=draws))
    return tuple(found)


def _score(opponent: str, difficulty: int, *, games: int, wins: int, draws: int) -> MatchScore:
    known = wilson(wins + 0.5 * draws, games)
    mean = (wins + 0.5 * draws) / games
    return MatchScore(opponent, difficulty, games, wins, draws, mean, known.lower, known.upper)


def unlike_settings(one: WorldSettings, other: WorldSettings) -> list[str]:
    """The settings by which agents of two worlds can't meet in a match."""
    if one.world != other.world:
        return ["env.world"]
    mine: Mapping[str, object] = as_dict(one)
    theirs: Mapping[str, object] = as_dict(other)
    return [f"env.{key}" for key in mine if key not in UNLIKE and mine[key] != theirs.get(key)]


HEAD = ("against", "difficulty", "score [95 %]", "wins", "draws", "games")


def match_rows(scores: Sequence[MatchScore]) -> list[tuple[str, ...]]:
    """Rows under HEAD."""
    rows: list[tuple[str, ...]] = []
    before = ""
    for one in scores:
        rows.append(
            (
                "" if one.opponent == before else one.opponent,
                str(one.difficulty or "all"),
                shown_rate(one.score, one.lower, one.upper),
                f"{one.wins:,}",
                f"{one.draws:,}",
                f"{one.games:,}",
            )
        )
        before = one.opponent
    return rows
