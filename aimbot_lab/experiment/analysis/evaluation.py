"""A tracked run's agent, evaluated on new seeds beside the baselines."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from aimbot_lab.evaluation.evaluate import CellScore, Score, score_all, score_cell
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.experiment.analysis.evaluation_task import (
    EvaluationTask,
    baselines,
    last_lesson,
    play_task,
    policies,
)
from aimbot_lab.experiment.analysis.match_scores import (
    MatchPlan,
    MatchScore,
    as_match_player,
    opponents_of,
    play_matches,
)
from aimbot_lab.experiment.runs.result import cell_name
from aimbot_lab.experiment.runs.tracked_agent import TrackedAgent
from aimbot_lab.foundation.world_type import MakePlayer
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.worlds.registry import content_of, spec_of

OnCell = Callable[[str, str], None]  # player, cell


@dataclass(frozen=True)
class EvaluationRequest:
    """How to evaluate."""

    episodes: int  # of each cell
    seed: int
    baselines: bool
    temperature: Temperature | None = None  # None: the one that agents are advised to play at
    max_steps: int | None = None  # of an episode; see `evaluation.episodes.longest_episode`


@dataclass(frozen=True)
class PlayerScores:
    """How one player did: the agent in one of its ways to play, or a baseline."""

    overall: Score
    cells: tuple[CellScore, ...]


def drop_empty_measures(scores: dict[str, Any]) -> None:
    """Leave `measures` out of `scores`, a player's as plain data, where the world has none."""
    for score in (scores["overall"], *scores["cells"]):
        if not score["measures"]:
            del score["measures"]


@dataclass(frozen=True)
class Evaluated:
    """Scores by player; the first is the agent at the temperature asked for, else as advised."""

    run_id: str
    name: str
    agent: str  # "best" or "last"
    step: int  # environment step at which the agent was saved
    seed: int
    episodes: int  # of each cell
    temperature: Temperature  # of the first player
    advised: Temperature  # at which record, compare and export play it where nothing is asked for
    players: Mapping[str, PlayerScores]
    time_unit: str = "s"  # of the time to win
    has_draws: bool = False  # whether the world's episodes may end in a draw
    content: Mapping[str, str] | None = None  # what the world's settings name, such as a map
    matches: tuple[MatchScore, ...] = ()  # of the first player, in a run by self-play
    left_out: tuple[str, ...] = ()  # opponents that could not be read, each with the reason

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        document = {"schema": 3, **asdict(self)}
        for scores in document["players"].values():
            drop_empty_measures(scores)
        if self.content is None:
            del document["content"]
        for name in ("matches", "left_out"):
            if not document[name]:
                del document[name]
        return document


def evaluate_agent(
    agent: TrackedAgent,
    request: EvaluationRequest,
    *,
    on_cell: OnCell,
    matches: MatchPlan | None = None,
) -> Evaluated:
    """Scores in every cell of the last lesson of the run's curriculum, and in `matches`.

    `on_cell` is called after each cell that a player has played.
    """
    task = _task(agent, request)
    scripted = baselines(task.env) if request.baselines else {}
    players = {
        player: _scores(player, task, make, on_cell=on_cell)
        for player, make in {**policies(agent.saved, request.temperature), **scripted}.items()
    }
    return Evaluated(
        run_id=agent.run.run_id,
        name=agent.run.name,
        agent=agent.which,
        step=agent.step,
        seed=request.seed,
        episodes=request.episodes,
        temperature=agent.saved.agent.temperature(request.temperature),
        advised=agent.saved.agent.temperature(),
        players=players,
        time_unit=(spec := spec_of(task.env)).time_unit,
        has_draws=spec.has_draws or any(one.overall.draws for one in players.values()),
        content=content_of(task.env),
        matches=_matches(agent, request, matches, on_cell=on_cell),
        left_out=() if matches is None else matches.left_out,
    )


def matches_of(
    agent: TrackedAgent,
    request: EvaluationRequest,
    *,
    data_folder: DataFolder,
    tracking_uri: str | None = None,
) -> MatchPlan | None:
    """What an agent of a run by self-play plays besides; None of another run."""
    return opponents_of(
        agent,
        episodes=request.episodes,
        seed=request.seed,
        scripts=request.baselines,
        data_folder=data_folder,
        tracking_uri=tracking_uri,
    )


def _matches(
    agent: TrackedAgent, request: EvaluationRequest, plan: MatchPlan | None, *, on_cell: OnCell
) -> tuple[MatchScore, ...]:
    if plan is None:
        return ()
    player = as_match_player(agent, request.temperature)
    return play_matches(
        player, plan, on_part=lambda who, cell: on_cell(f"against {who}", cell_name(*cell))
    )


def _task(agent: TrackedAgent, request: EvaluationRequest) -> EvaluationTask:
    episodes, limit = request.episodes, request.max_steps
    return last_lesson(agent.config, episodes=episodes, seed=request.seed, max_steps=limit)


def _scores(
    player: str, task: EvaluationTask, make: MakePlayer, *, on_cell: OnCell
) -> PlayerScores:
    played = play_task(task, make, on_cell=lambda cell: on_cell(player, cell_name(*cell)))
    return PlayerScores(score_all(played), tuple(map(score_cell, played)))


def cells_to_play(
    agent: TrackedAgent, request: EvaluationRequest, matches: MatchPlan | None = None
) -> int:
    """How often `on_cell` will be called."""
    task = _task(agent, request)
    players = len(policies(agent.saved, request.temperature))
    players += request.baselines * len(baselines(task.env))
    return players * len(task.cells) + (0 if matches is None else matches.parts)
