"""Tracked runs compared: their agents in the same episodes, how they learned, what differs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from aimbot_lab.evaluation.differences import Difference, differences
from aimbot_lab.evaluation.episodes import CellEpisodes, score_all, score_cell
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.experiment.analysis.evaluation import (
    EvaluationTask,
    PlayerScores,
    drop_empty_measures,
    last_lesson,
    play_task,
    player_at,
    trace,
)
from aimbot_lab.experiment.analysis.learning_curve import LearningCurve, common_steps, mean_win_rate
from aimbot_lab.experiment.analysis.matches import (
    MatchPlan,
    MatchScore,
    direct_plan,
    play_matches,
)
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.description import settings_that_differ
from aimbot_lab.experiment.runs.result import cell_name
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.registry import spec_of, with_shape_of


@dataclass(frozen=True)
class ComparisonRequest:
    """How to compare."""

    episodes: int  # of each cell
    seed: int
    margin: float  # a difference of win rates within which two agents are alike
    temperature: Temperature | None = None  # None: the one that each is advised to play at
    max_steps: int | None = None  # of an episode; see `evaluation.episodes.longest_episode`


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs."""

    run_id: str
    name: str
    status: str
    seed: int
    agent: str  # "best" or "last"
    step: int  # at which that was saved
    temperature: Temperature  # that it played at
    scores: PlayerScores
    curve: LearningCurve
    mean_win_rate: float | None  # while it learned, over the steps that all runs have


@dataclass(frozen=True)
class Comparison:
    """The runs, and what separates each but the first from the first."""

    request: ComparisonRequest
    runs: tuple[ComparedRun, ...]
    differences: tuple[tuple[Difference, ...], ...]  # of runs[1:]: all cells together, then each
    common_steps: tuple[int, int] | None  # that the mean win rates are taken over
    settings: Mapping[str, tuple[str, ...]]  # those that differ, with every run's value
    left_out: tuple[str, ...]  # cells that not all runs ended on
    unpaired: str = ""  # why the runs did not meet the same episodes; "": they did
    matches: tuple[tuple[MatchScore, ...], ...] = ()  # of runs[1:] against the first
    unmatched: tuple[str, ...] = ()  # why there is no match, for each of them: "": there is one

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document; without the points of the curves."""
        document = {"schema": 2, **asdict(self)}
        for run in document["runs"]:
            run["lessons"] = run.pop("curve")["lessons"]
            drop_empty_measures(run["scores"])
        for row in (row for rows in document["differences"] for row in rows):
            cell = row.pop("cell")
            if not row["measures"]:
                del row["measures"]
            row |= {"target": cell and cell[0], "difficulty": cell and cell[1]}
        for name in ("matches", "unmatched"):
            if not document[name]:
                del document[name]
        return document


def compare_agents(
    agents: Sequence[TrackedAgent],
    curves: Sequence[LearningCurve],
    request: ComparisonRequest,
    *,
    on_cell: Callable[[str, str], None],
) -> Comparison:
    """All agents in the cells that all their curricula end on, in the world of the first.

    Each sees with the rays that it learned with. `on_cell` is called after each cell of a run.
    Raises ConfigurationError where no cell is common, or an agent can't play at the temperature.
    """
    task = common_task(agents, request)
    temperatures = [agent.saved.agent.temperature(request.temperature) for agent in agents]
    played = [
        play_run(agent, task, temperature, on_cell=on_cell)
        for agent, temperature in zip(agents, temperatures, strict=True)
    ]
    unpaired = why_unpaired(agents, task, temperatures[0], played)
    rows = differences(played[0], played[1:], margin=request.margin, are_paired=not unpaired)
    steps = common_steps(curves)
    plans = direct_plans(agents, request)
    return Comparison(
        request=request,
        runs=tuple(
            _compared_run(*one, steps=steps)
            for one in zip(agents, played, curves, temperatures, strict=True)
        ),
        differences=rows,
        common_steps=steps,
        settings=settings_that_differ([(agent.run, agent.config) for agent in agents]),
        left_out=_left_out(agents, request),
        unpaired=unpaired,
        matches=tuple(
            play_matches(agent, plan, request.temperature, on_cell=on_cell)
            for agent, plan in zip(agents[1:], plans, strict=False)
        ),
        unmatched=tuple("".join(plan.left_out) for plan in plans),
    )


def why_unpaired(
    agents: Sequence[TrackedAgent],
    task: EvaluationTask,
    temperature: Temperature,
    played: Sequence[tuple[CellEpisodes, ...]],
) -> str:
    """Why `agents`, of which the first played at `temperature`, did not meet the same episodes.

    "" where they did. Observations can be compared of those alone that see the same columns.
    """
    seen = [with_shape_of(task.env, agent.saved.env) for agent in agents]
    if not spec_of(task.env).can("paired"):
        return f"world {task.env.world} begins episodes from no seed"
    starts = [[start for cell in cells for start in cell.starts] for cells in played]
    for env, others in zip(seen[1:], starts[1:], strict=True):
        differ = sum(a != b for a, b in zip(starts[0], others, strict=True))
        if env == seen[0] and differ:
            return f"{differ:,} of {len(others):,} began with another observation"
    first = replace(task, env=seen[0])
    if not spec_of(task.env).can("snapshot"):  # those that have it are known to repeat themselves
        traces = [trace(first, player_at(agents[0].saved, temperature)) for _ in range(2)]
        if traces[0] != traces[1]:
            return "the same seeds do not bring the same episodes again"
    return ""


def _left_out(agents: Sequence[TrackedAgent], request: ComparisonRequest) -> tuple[str, ...]:
    """Cells that not all of `agents` ended on."""
    every: list[set[str]] = [
        {cell_name(*cell) for cell in _own_task(agent, request).cells} for agent in agents
    ]
    return tuple(sorted(set[str]().union(*every) - every[0].intersection(*every)))


def direct_plans(
    agents: Sequence[TrackedAgent], request: ComparisonRequest
) -> tuple[MatchPlan, ...]:
    """The matches of `agents[1:]` against the first; none in a world without two sides."""
    episodes, seed, temperature = request.episodes, request.seed, request.temperature
    plans = (
        direct_plan(agent, agents[0], episodes=episodes, seed=seed, temperature=temperature)
        for agent in agents[1:]
    )
    return tuple(plan for plan in plans if plan is not None)


def common_task(agents: Sequence[TrackedAgent], request: ComparisonRequest) -> EvaluationTask:
    """What all `agents` are to play, in the world of the first.

    Raises ConfigurationError where one learned in another world, or no cell is common.
    """
    here = agents[0].config.env.world
    for agent in agents:
        if agent.config.env.world != here:
            who = f"run {agent.run.run_id[:8]}"
            what = f"{who} trained in world {agent.config.env.world}, not in {here}"
            raise ConfigurationError(what)
    tasks = [_own_task(agent, request) for agent in agents]
    cells = tuple(cell for cell in tasks[0].cells if all(cell in task.cells for task in tasks))
    if not cells:
        ends = "; ".join(
            f"{agent.run.run_id[:8]} on {', '.join(cell_name(*cell) for cell in task.cells)}"
            for agent, task in zip(agents, tasks, strict=True)
        )
        raise ConfigurationError(
            f"the runs have nothing in common to play; their curricula end: {ends}"
        )
    return replace(tasks[0], cells=cells)


def _own_task(agent: TrackedAgent, request: ComparisonRequest) -> EvaluationTask:
    episodes, limit = request.episodes, request.max_steps
    return last_lesson(agent.config, episodes=episodes, seed=request.seed, max_steps=limit)


def play_run(
    agent: TrackedAgent,
    task: EvaluationTask,
    temperature: Temperature,
    *,
    on_cell: Callable[[str, str], None],
) -> tuple[CellEpisodes, ...]:
    """The episodes of `task` that `agent` plays, seen with what it learned with."""
    seen = with_shape_of(task.env, agent.saved.env)
    return play_task(
        replace(task, env=seen),
        player_at(agent.saved, temperature),
        on_cell=lambda cell: on_cell(agent.run.run_id[:8], cell_name(*cell)),
    )


def _compared_run(
    agent: TrackedAgent,
    played: Sequence[CellEpisodes],
    curve: LearningCurve,
    temperature: Temperature,
    *,
    steps: tuple[int, int] | None,
) -> ComparedRun:
    return ComparedRun(
        run_id=agent.run.run_id,
        name=agent.run.name,
        status=agent.run.status,
        seed=agent.config.seed,
        agent=agent.which,
        step=agent.step,
        temperature=temperature,
        scores=PlayerScores(score_all(played), tuple(map(score_cell, played))),
        curve=curve,
        mean_win_rate=None if steps is None else mean_win_rate(curve, *steps),
    )
