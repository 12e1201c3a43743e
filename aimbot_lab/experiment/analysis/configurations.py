"""Trainings that differ in their seed alone as one result, and several such results compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from math import isfinite
from typing import Any

import numpy as np

from aimbot_lab.evaluation.episodes import CellEpisodes
from aimbot_lab.evaluation.evaluate import score_all, score_cell
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.evaluation.training_aggregates import (
    Estimate,
    Scores,
    estimate,
    interquartile_mean,
    mean,
    probability_of_improvement,
)
from aimbot_lab.experiment.analysis.comparison import (
    ComparisonRequest,
    common_task,
    play_run,
    why_unpaired,
)
from aimbot_lab.experiment.analysis.configuration_names import NamedRun, configuration_names
from aimbot_lab.experiment.analysis.evaluation import PlayerScores
from aimbot_lab.experiment.runs.description import config_hash
from aimbot_lab.experiment.runs.differing import settings_that_differ
from aimbot_lab.experiment.runs.result import cell_name
from aimbot_lab.experiment.runs.tracked_agent import TrackedAgent
from aimbot_lab.foundation.statistics.intervals import wilson

CONFIG_TAG = "lab.config"


@dataclass(frozen=True)
class SeedRun:
    """One training of a configuration."""

    run_id: str
    name: str
    seed: int
    status: str
    step: int  # at which its agent was saved
    temperature: Temperature  # that its agent played at
    seconds: float | None  # that the run took; None while it runs
    scores: PlayerScores


@dataclass(frozen=True)
class Configuration:
    """Trainings that differ in their seed alone."""

    label: str
    config: str  # the tag that they share
    runs: tuple[SeedRun, ...]
    mean: Estimate
    iqm: Estimate
    improvement: Estimate | None  # probability of being better than the first; None of the first


@dataclass(frozen=True)
class ComparedConfigurations:
    """All configurations, in the order in which their first runs were named."""

    request: ComparisonRequest
    cells: tuple[str, ...]
    configurations: tuple[Configuration, ...]
    settings: Mapping[str, tuple[str, ...]]  # those that differ, with every configuration's value
    unpaired: str = ""  # why the trainings did not meet the same episodes; "": they did

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document; an interval that is not known is null."""
        document = {"schema": 1, **asdict(self)}
        for one in document["configurations"]:
            for key in ("mean", "iqm", "improvement"):
                one[key] = one[key] and _interval_json(one[key])
        return document


def _interval_json(found: Estimate) -> dict[str, float | None]:
    return {key: v if isfinite(v) else None for key, v in found._asdict().items()}


def by_configuration(agents: Sequence[TrackedAgent]) -> dict[str, list[TrackedAgent]]:
    """The agents by what their runs have in common besides the seed."""
    groups: dict[str, list[TrackedAgent]] = {}
    for agent in agents:
        key = agent.run.tags.get(CONFIG_TAG) or config_hash(agent.config)
        group = groups.setdefault(key, [])
        if agent.run.run_id not in [known.run.run_id for known in group]:
            group.append(agent)
    return groups


def compare_configurations(
    agents: Sequence[TrackedAgent],
    request: ComparisonRequest,
    *,
    on_cell: Callable[[str, str], None],
) -> ComparedConfigurations:
    """Every agent in the same episodes, then each configuration over its trainings.

    `on_cell` is called after each cell of a run. Raises ConfigurationError where the runs have
    no cell in common.
    """
    task, groups = common_task(agents, request), by_configuration(agents)
    every = [agent for group in groups.values() for agent in group]
    temperatures = [agent.saved.agent.temperature(request.temperature) for agent in every]
    played = [
        play_run(agent, task, temperature, on_cell=on_cell)
        for agent, temperature in zip(every, temperatures, strict=True)
    ]
    unpaired = why_unpaired(every, task, temperatures[0], played)
    scored = iter(map(_seed_run, every, temperatures, played))
    runs = {key: tuple(islice(scored, len(group))) for key, group in groups.items()}
    first = _scores(next(iter(runs.values())))
    labels = _labels(groups)
    found = tuple(
        _configuration(labels[key], key, of_key, first=first if number else None)
        for number, (key, of_key) in enumerate(runs.items())
    )
    firsts = [(group[0].run, replace(group[0].config, seed=0)) for group in groups.values()]
    cells = tuple(cell_name(*cell) for cell in task.cells)
    return ComparedConfigurations(request, cells, found, settings_that_differ(firsts), unpaired)


def _seed_run(
    agent: TrackedAgent, temperature: Temperature, played: Sequence[CellEpisodes]
) -> SeedRun:
    return SeedRun(
        run_id=agent.run.run_id,
        name=agent.run.name,
        seed=agent.config.seed,
        status=agent.run.status,
        step=agent.step,
        temperature=temperature,
        seconds=agent.run.seconds,
        scores=PlayerScores(score_all(played), tuple(map(score_cell, played))),
    )


def _scores(runs: Sequence[SeedRun]) -> Scores:
    """Win rates [R, C]."""
    return np.array([[cell.win_rate for cell in run.scores.cells] for run in runs], np.float64)


def _configuration(
    label: str, key: str, runs: tuple[SeedRun, ...], *, first: Scores | None
) -> Configuration:
    scores = _scores(runs)
    better = None if first is None else estimate(probability_of_improvement, scores, first)
    return Configuration(
        label=label,
        config=key,
        runs=runs,
        mean=_mean(runs, scores),
        iqm=estimate(interquartile_mean, scores),
        improvement=better,
    )


def _mean(runs: Sequence[SeedRun], scores: Scores) -> Estimate:
    """The mean win rate with its interval over trainings; over episodes where these are alike."""
    found = estimate(mean, scores)
    if isfinite(found.lower) or len(runs) < 2:
        return found
    overall = [run.scores.overall for run in runs]
    episodes = sum(one.episodes for one in overall)
    rate = wilson(found.value * episodes, episodes)
    return Estimate(found.value, rate.lower, rate.upper)


def _labels(groups: Mapping[str, Sequence[TrackedAgent]]) -> dict[str, str]:
    return configuration_names(
        {
            key: [NamedRun(one.run.name, one.config.seed, one.config.name) for one in group]
            for key, group in groups.items()
        }
    )
