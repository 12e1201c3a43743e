"""Runs that differ in their seed alone as one result: compared, in tables, and as a page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.evaluation.episodes import CellEpisodes, score_all, score_cell
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.experiment.analysis.comparison import (
    ComparisonRequest,
    common_task,
    play_run,
    why_unpaired,
)
from aimbot_lab.experiment.analysis.evaluation import PlayerScores, drop_win_rates, shown_score
from aimbot_lab.experiment.analysis.learning_curve import (
    COLOURS,
    Estimate,
    Interval,
    Scores,
    estimate,
    heading,
    html_table,
    interquartile_mean,
    interval_chart,
    mean,
    page,
    paragraph,
    probability_of_improvement,
)
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.result import config_hash, settings_that_differ
from aimbot_lab.foundation.episodes import welch, wilson
from aimbot_lab.foundation.shown_text import percent, shown_difference, shown_rate, shown_return
from aimbot_lab.worlds.registry import spec_of

TAG_LETTERS = 6
CONFIG_TAG = "lab.config"
SEED_HEAD = ("seed", "run", "status", "steps", "took, s", "score [95 %]")
HEAD = (
    *("configuration", "runs", "mean [95 %]", "interquartile mean [95 %]", "beats the first"),
    "less the first [95 %]",
)


class NamedRun(NamedTuple):
    """What a run of a configuration is called."""

    name: str  # its own, as `--name` gave it
    seed: int
    curriculum: str  # the name in its curriculum


def configuration_names(groups: Mapping[str, Sequence[NamedRun]]) -> dict[str, str]:
    """The name of each configuration by its tag: the one that all its runs were given.

    Without their seeds, which `--seeds` and runs without `--name` append. Runs of different names
    have that of their curriculum. Where several configurations have the same name, the beginning
    of the tag follows.
    """
    names = {tag: _common_name(runs) for tag, runs in groups.items()}
    several = {name for name in names.values() if [*names.values()].count(name) > 1}
    return {
        tag: f"{name} ({tag[:TAG_LETTERS]})" if name in several else name
        for tag, name in names.items()
    }


def _common_name(runs: Sequence[NamedRun]) -> str:
    given = {run.name.removesuffix(f" seed {run.seed}") for run in runs}
    return given.pop() if len(given) == 1 else runs[0].curriculum


@dataclass(frozen=True)
class SeedRun:
    """One run of a configuration."""

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
    """Runs that differ in their seed alone."""

    label: str
    config: str  # the tag that they share
    runs: tuple[SeedRun, ...]
    mean: Estimate
    iqm: Estimate
    improvement: Estimate | None  # probability of being better than the first; None of the first
    difference: Estimate | None  # of mean scores, less that of the first; None of the first


@dataclass(frozen=True)
class ComparedConfigurations:
    """All configurations, in the order in which their first runs were named."""

    request: ComparisonRequest
    cells: tuple[str, ...]
    configurations: tuple[Configuration, ...]
    settings: Mapping[str, tuple[str, ...]]  # those that differ, with every configuration's value
    unpaired: str = ""  # why the runs did not meet the same episodes; "": they did
    has_wins: bool = True  # else they are compared by their mean returns

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document; an interval that is not known is null."""
        document = {"schema": 1, **asdict(self)}
        for one in document["configurations"]:
            for key in ("mean", "iqm", "improvement", "difference"):
                if one[key] is not None:
                    numbers = one[key]._asdict()
                    one[key] = {k: v if isfinite(v) else None for k, v in numbers.items()}
            for run in one["runs"]:
                if not self.has_wins:
                    drop_win_rates(run["scores"])
        return document


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
    """Every agent in the same episodes, then each configuration over its runs.

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
    has_wins = spec_of(task.env).has_wins
    first = _scores(next(iter(runs.values())), has_wins)
    labels = configuration_names(
        {
            key: [NamedRun(one.run.name, one.config.seed, one.config.name) for one in group]
            for key, group in groups.items()
        }
    )
    found = tuple(
        _configuration(labels[key], key, of_key, first=first if number else None, has_wins=has_wins)
        for number, (key, of_key) in enumerate(runs.items())
    )
    firsts = [(group[0].run, replace(group[0].config, seed=0)) for group in groups.values()]
    cells = tuple(cell.shown for cell in task.cells)
    settings = settings_that_differ(firsts)
    return ComparedConfigurations(request, cells, found, settings, unpaired, has_wins)


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


def _scores(runs: Sequence[SeedRun], has_wins: bool) -> Scores:
    """Win rates [R, C], or mean returns."""
    worth = "win_rate" if has_wins else "mean_return"
    return np.array([[getattr(cell, worth) for cell in run.scores.cells] for run in runs], float)


def _configuration(
    label: str, key: str, runs: tuple[SeedRun, ...], *, first: Scores | None, has_wins: bool
) -> Configuration:
    scores = _scores(runs, has_wins)
    better = None if first is None else estimate(probability_of_improvement, scores, first)
    return Configuration(
        label=label,
        config=key,
        runs=runs,
        mean=_mean_win_rate(runs, scores) if has_wins else mean(scores),
        iqm=estimate(interquartile_mean, scores),
        improvement=better,
        difference=None if first is None else _difference(scores, first),
    )


def _difference(scores: Scores, first: Scores) -> Estimate:
    found = welch(*(one.mean(axis=1).tolist() for one in (first, scores)))
    if found.lower is None or found.upper is None:
        return Estimate(found.mean, nan, nan)
    return Estimate(found.mean, found.lower, found.upper)


def _mean_win_rate(runs: Sequence[SeedRun], scores: Scores) -> Estimate:
    """The mean win rate with its interval over runs; over episodes where these are alike."""
    found = mean(scores)
    if isfinite(found.lower):
        return Estimate(found.value, max(found.lower, 0.0), min(found.upper, 1.0))
    if len(runs) < 2:
        return found
    overall = [run.scores.overall for run in runs]
    episodes = sum(one.episodes for one in overall)
    rate = wilson(found.value * episodes, episodes)
    return Estimate(found.value, rate.lower, rate.upper)


def shown(found: Estimate | None, *, is_rate: bool = True) -> str:
    """A value with its interval over runs, where there is one."""
    if found is None:
        return "-"
    ends = (found.lower, found.upper) if isfinite(found.lower) else ()
    if not is_rate:
        return shown_return(found.value, *ends)
    return shown_rate(found.value, *ends) if ends else percent(found.value)


def seed_row(run: SeedRun, *, has_wins: bool) -> tuple[str, ...]:
    """One run, under SEED_HEAD."""
    return (
        str(run.seed),
        run.run_id[:12],
        run.status,
        f"{run.step:,}",
        "-" if run.seconds is None else f"{run.seconds:,.0f}",
        shown_score(run.scores.overall, has_wins=has_wins),
    )


def _shown_difference(found: Estimate | None, *, has_wins: bool) -> str:
    if found is None or not has_wins:
        return shown(found, is_rate=False)
    ends = (found.lower, found.upper) if isfinite(found.lower) else (None, None)
    return shown_difference(found.value, *ends)


def configuration_rows(found: ComparedConfigurations) -> list[tuple[str, ...]]:
    """All configurations, under HEAD."""
    return [
        (
            one.label,
            str(len(one.runs)),
            shown(one.mean, is_rate=found.has_wins),
            shown(one.iqm, is_rate=found.has_wins),
            shown(one.improvement),
            _shown_difference(one.difference, has_wins=found.has_wins),
        )
        for one in found.configurations
    ]


def method(found: ComparedConfigurations) -> str:
    """How the numbers came about."""
    request = found.request
    drawn = [run.temperature.label for one in found.configurations for run in one.runs]
    few = min(len(one.runs) for one in found.configurations)
    worth = "win rate" if found.has_wins else "mean return"
    warning = " Bootstrap intervals over fewer than five runs are too short." if few < 5 else ""
    met = (
        f"each met its own, because {found.unpaired}" if found.unpaired else "all met the same ones"
    )
    return (
        f"{request.episodes:,} episodes of each of {', '.join(found.cells)}, seed {request.seed} "
        f"(actions: {', '.join(dict.fromkeys(drawn))}); {met}. Scores are {worth}s. A run's "
        "interval is over its episodes; those of a configuration are over runs (Student's for the "
        "mean, a bootstrap of whole runs for the others; where these are all alike, the mean's is "
        "over their episodes and the others have none). The interquartile mean is that of the "
        "middle half of all scores. "
        "'Beats the first' is how probable it is that a run of this configuration has a "
        f"higher {worth} than one of the first; 'less the first' is the difference of their means "
        f"with Welch's interval over runs.{warning}"
    )


def configuration_page(found: ComparedConfigurations) -> str:
    """The whole page, in one text."""
    settings = [(key, *values) for key, values in found.settings.items()]
    labels = [one.label for one in found.configurations]
    pairs, low, high = zip(found.configurations, cycle(COLOURS), strict=False), 0.0, 1.0
    intervals = [_interval(one.label, one.iqm, colour) for one, colour in pairs]
    if not found.has_wins:
        low, high = min(one.lower for one in intervals), max(one.upper for one in intervals)
        low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    return page(
        "Comparison of " + ", ".join(labels),
        [
            html_table(HEAD, configuration_rows(found)),
            heading("Score, interquartile mean over runs"),
            interval_chart(intervals, low=low, high=high, zero=None),
            *_better(found),
            paragraph(method(found), quiet=True),
            heading("Runs"),
            html_table(
                ("configuration", *SEED_HEAD),
                [
                    (one.label, *seed_row(run, has_wins=found.has_wins))
                    for one in found.configurations
                    for run in one.runs
                ],
            ),
            heading("Settings that differ"),
            html_table(("setting", *labels), settings) if settings else paragraph("None."),
        ],
    )


def _better(found: ComparedConfigurations) -> list[str]:
    intervals = [
        _interval(one.label, one.improvement, "#333")
        for one in found.configurations
        if one.improvement is not None
    ]
    if not intervals:
        return []
    title = f"Probability that a run beats one of {found.configurations[0].label}"
    return [heading(title), interval_chart(intervals, low=0.0, high=1.0, zero=0.5)]


def _interval(label: str, found: Estimate, colour: str) -> Interval:
    """One run has no interval: its bar has no length."""
    lower, upper = (
        (found.lower, found.upper) if isfinite(found.lower) else (found.value, found.value)
    )
    return Interval(label, found.value, lower, upper, colour)
