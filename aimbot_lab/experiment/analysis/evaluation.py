"""An agent of a tracked run, evaluated on new seeds beside the baselines, and what is kept."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from aimbot_lab.curriculum.settings import lesson_cells
from aimbot_lab.evaluation.episodes import (
    CellEpisodes,
    CellScore,
    Score,
    play,
    score_all,
    score_cell,
    traced,
)
from aimbot_lab.evaluation.temperature import COOLER, LIKELIEST, SAMPLED, Temperature
from aimbot_lab.experiment.analysis.matches import (
    HEAD,
    MatchPlan,
    MatchScore,
    match_rows,
    play_matches,
)
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.result import markdown_table, with_section
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.shown_text import percent, percent_interval, shown_rate, shown_return
from aimbot_lab.foundation.world import closing
from aimbot_lab.foundation.world_type import MakePlayer, WorldSettings
from aimbot_lab.tracking.history import Addition
from aimbot_lab.tracking.tracker import NOTE_TAG
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.worlds.registry import (
    content_of,
    evaluated,
    make_world,
    rows_for,
    spec_of,
    type_of,
)

TRACED_EPISODES = 8
OnCell = Callable[[str, str], None]  # player, cell
FOLDER = "evaluation"  # among a run's artifacts


@dataclass(frozen=True)
class EvaluationTask:
    """Cells to be played in a world, `episodes` of each."""

    env: WorldSettings
    cells: tuple[Cell, ...]
    parameters: Mapping[str, ParameterValue]
    episodes: int  # of each cell
    seed: int
    max_steps: int | None = None  # of an episode, beyond which it is an error; None: the world's


def last_lesson(
    config: CurriculumFile, *, episodes: int, seed: int, max_steps: int | None = None
) -> EvaluationTask:
    """The cells and parameters of the last lesson, in the curriculum's world.

    Without `max_steps` what the curriculum says of its own evaluation counts.
    """
    lesson = config.lessons[-1]
    cells = lesson_cells(lesson, spec_of(config.env).difficulties)
    parameters, limit = dict(lesson.parameters), max_steps_of(config, max_steps)
    return EvaluationTask(evaluated(config.env), cells, parameters, episodes, seed, limit)


def max_steps_of(config: CurriculumFile, asked: int | None) -> int | None:
    """Steps of an episode beyond which it is an error, if `asked` or the curriculum says."""
    if asked is not None or config.evaluation is None:
        return asked
    return config.evaluation.max_steps


def play_task(
    task: EvaluationTask, make_player: MakePlayer, *, on_cell: Callable[[Cell], None]
) -> tuple[CellEpisodes, ...]:
    """The episodes of every cell in order; `on_cell` is called after each.

    Each cell has a player of its own, which remembers nothing of the cell before.
    """
    played = []
    with closing(make_world(task.env, rows_for(task.env, task.episodes))) as world:
        for cell in task.cells:
            player = make_player(world, derive_seed(task.seed, "player", *cell))
            played.append(
                play(
                    world,
                    player,
                    cell,
                    seed=task.seed,
                    episodes=task.episodes,
                    parameters=task.parameters,
                    max_steps=task.max_steps,
                )
            )
            on_cell(cell)
    return tuple(played)


def trace(task: EvaluationTask, make_player: MakePlayer) -> tuple[bytes, ...]:
    """Hashes of how a few episodes of each cell begin; see `evaluation.episodes.traced`."""
    found = []
    rows = rows_for(task.env, min(task.episodes, TRACED_EPISODES))
    with closing(make_world(task.env, rows)) as world:
        for cell in task.cells:
            player = make_player(world, derive_seed(task.seed, "player", *cell))
            found.append(traced(world, player, cell, seed=task.seed, parameters=task.parameters))
    return tuple(found)


def player_at(agent: Agent, temperature: Temperature) -> MakePlayer:
    """The agent as it plays at `temperature`."""
    return lambda world, seed: agent.player(world, temperature=temperature, seed=seed)


def policies(saved: SavedAgent, asked: Temperature | None = None) -> dict[str, MakePlayer]:
    """The agent's ways to play by their labels, first the one at the temperature `asked`.

    Where none is asked for that is the one it is advised to play at. The others are actions
    sampled as in training, those at a lower temperature, and the likeliest each time. Agents of
    algorithms that only rank actions have but the last; ConfigurationError where they are asked
    for another.
    """
    first = saved.agent.temperature(asked)
    others = (SAMPLED, COOLER, LIKELIEST) if saved.agent.samples else (LIKELIEST,)
    return {way.label: player_at(saved.agent, way) for way in (first, *others)}


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


def shown_score(score: Score, *, has_wins: bool) -> str:
    """The win rate with its interval; the mean return where nothing can be won."""
    if has_wins:
        return shown_rate(score.win_rate, score.lower, score.upper)
    return shown_return(score.mean_return, score.return_lower, score.return_upper)


def drop_win_rates(scores: dict[str, Any]) -> None:
    """Leave out of `scores`, a player's as plain data, what is said of wins, as there are none."""
    for score in (scores["overall"], *scores["cells"]):
        for name in ("wins", "win_rate", "lower", "upper", "median_seconds_to_win"):
            del score[name]


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
    has_wins: bool = True  # whether they may be won
    content: Mapping[str, str] | None = None  # what the world's settings name, such as a map
    matches: tuple[MatchScore, ...] = ()  # of the first player, in a run by self-play
    left_out: tuple[str, ...] = ()  # opponents that could not be read, each with the reason

    def clearly_better(self) -> Temperature | None:
        """At which the agent did better than as advised, their intervals apart; None: at none."""
        ways = {way.label: way for way in (COOLER, LIKELIEST) if way.label in self.players}
        known = {way: self._interval(label) for label, way in ways.items()}
        best = max(known, key=lambda way: known[way][0], default=None)
        if best is None or self.advised.label not in self.players:
            return None
        return best if known[best][0] > self._interval(self.advised.label)[1] else None

    def _interval(self, player: str) -> tuple[float, float]:
        """Of its win rate, or of its mean return; of all numbers where that is not known."""
        score = self.players[player].overall
        lower, upper = score.return_lower, score.return_upper
        if self.has_wins:
            lower, upper = score.lower, score.upper
        return (-inf if lower is None else lower, inf if upper is None else upper)

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        document = {"schema": 3, **asdict(self)}
        for scores in document["players"].values():
            drop_empty_measures(scores)
            if not self.has_wins:
                drop_win_rates(scores)
        if self.content is None:
            del document["content"]
        for name in ("matches", "left_out"):
            if not document[name]:
                del document[name]
        if (better := self.clearly_better()) is not None:
            document["clearly_better"] = float(better)
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
    scripted = type_of(task.env).baselines(task.env) if request.baselines else {}
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
        has_wins=spec.has_wins,
        has_draws=spec.has_draws or any(one.overall.draws for one in players.values()),
        content=content_of(task.env),
        matches=()
        if matches is None
        else play_matches(agent, matches, request.temperature, on_cell=on_cell),
        left_out=() if matches is None else matches.left_out,
    )


def _task(agent: TrackedAgent, request: EvaluationRequest) -> EvaluationTask:
    episodes, limit = request.episodes, request.max_steps
    return last_lesson(agent.config, episodes=episodes, seed=request.seed, max_steps=limit)


def _scores(
    player: str, task: EvaluationTask, make: MakePlayer, *, on_cell: OnCell
) -> PlayerScores:
    played = play_task(task, make, on_cell=lambda cell: on_cell(player, cell.shown))
    return PlayerScores(score_all(played), tuple(map(score_cell, played)))


def cells_to_play(
    agent: TrackedAgent, request: EvaluationRequest, matches: MatchPlan | None = None
) -> int:
    """How often `on_cell` will be called."""
    task = _task(agent, request)
    players = len(policies(agent.saved, request.temperature))
    players += request.baselines * len(type_of(task.env).baselines(task.env))
    return players * len(task.cells) + (0 if matches is None else matches.parts)


def evaluation_record(evaluated: Evaluated, note: str) -> Addition:
    """What the run is to keep; `note` is its note so far."""
    document = json.dumps(evaluated.as_json(), indent=1)
    (_, first), *others = evaluated.players.items()
    won = {
        names.TEST_WIN_RATE: first.overall.win_rate,
        names.TEST_WIN_RATE_LOWER: first.overall.lower,
        names.TEST_WIN_RATE_UPPER: first.overall.upper,
        names.TEST_SECONDS_TO_WIN: first.overall.median_seconds_to_win,
        **{
            names.of_cell(names.TEST_WIN_RATE, Cell(score.target, score.difficulty)): score.win_rate
            for score in first.cells
        },
    }
    drawn = {names.TEST_DRAW_RATE: first.overall.draws / first.overall.episodes}
    for score in first.cells:
        cell = Cell(score.target, score.difficulty)
        drawn[names.of_cell(names.TEST_DRAW_RATE, cell)] = score.draws / score.episodes
    compared_by = "win_rate" if evaluated.has_wins else "mean_return"
    worth = {name: getattr(scores.overall, compared_by) for name, scores in others}
    known = {
        **(won if evaluated.has_wins else {}),
        names.TEST_RETURN: first.overall.mean_return,
        names.TEST_TEMPERATURE: evaluated.temperature,
        **(drawn if evaluated.has_draws else {}),
        **{names.player_win_rate(name): value for name, value in worth.items()},
        **{names.test_measure(name): value for name, value in first.overall.measures.items()},
    }
    return Addition(
        step=0,  # the page draws bars beside each other for these, and else a dot per chart
        metrics={key: value for key, value in known.items() if value is not None},
        tags={NOTE_TAG: with_section(note, "Evaluation", _section(evaluated))},
        texts={f"{FOLDER}/{evaluated.agent}.json": document},
    )


def _section(evaluated: Evaluated) -> str:
    columns = list(evaluated.players.values())
    rows = [
        (
            Cell(cell.target, cell.difficulty).shown,
            *(_shown(player.cells[i], evaluated) for player in columns),
        )
        for i, cell in enumerate(columns[0].cells)
    ]
    if len(rows) > 1:
        rows.append(("**all**", *(_shown(player.overall, evaluated) for player in columns)))
    run, matches = evaluated.run_id, ""
    if evaluated.matches:
        matches = "\n\nMatches:\n\n" + markdown_table(HEAD, match_rows(evaluated.matches))
    return (
        f"{evaluated.agent.capitalize()} agent, saved at step {evaluated.step:,}; "
        f"{evaluated.episodes:,} episodes of each cell; "
        f"{'win rate' if evaluated.has_wins else 'mean return'} with its 95 % interval.\n\n"
        + markdown_table(("cell", *evaluated.players), rows)
        + matches
        + f"\n\nAgain: `aimbot-lab evaluate {run} --agent {evaluated.agent} "
        f"--episodes {evaluated.episodes} --seed {evaluated.seed} "
        f"--temperature {evaluated.temperature:g}`"
    )


def _shown(score: Score, evaluated: Evaluated) -> str:
    if not evaluated.has_wins:
        return shown_return(score.mean_return, score.return_lower, score.return_upper)
    drawn = f", {score.draws:,} drawn" if score.draws else ""
    numbers = score.measures
    told = [
        f"; {name} {value:.3f}"
        for name, value in numbers.items()
        if f"{name}_lower" in numbers and value is not None
    ]
    rate = f"{percent(score.win_rate)} ({percent_interval(score.lower, score.upper)})"
    return f"{rate}{drawn}{''.join(told)}"
