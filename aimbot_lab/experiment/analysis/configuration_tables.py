"""Configurations as a person reads them: rows and sentences, and a page with charts."""

from itertools import cycle
from math import isfinite

from aimbot_lab.evaluation.training_aggregates import Estimate
from aimbot_lab.experiment.analysis.charts import COLOURS, Interval, interval_chart
from aimbot_lab.experiment.analysis.configurations import (
    ComparedConfigurations,
    Configuration,
    SeedRun,
)
from aimbot_lab.experiment.analysis.html_page import heading, html_table, page, paragraph
from aimbot_lab.foundation.statistics.intervals import shown_rate

SEED_HEAD = ("seed", "run", "status", "steps", "took, s", "win rate [95 %]")
HEAD = ("configuration", "trainings", "mean [95 %]", "interquartile mean [95 %]", "beats the first")


def shown(found: Estimate | None) -> str:
    """A value with its interval over trainings, where there is one."""
    if found is None:
        return "-"
    if not isfinite(found.lower):
        return f"{found.value:.3f}"
    return shown_rate(found.value, found.lower, found.upper)


def seed_row(run: SeedRun) -> tuple[str, ...]:
    """One training, under SEED_HEAD."""
    score = run.scores.overall
    return (
        str(run.seed),
        run.run_id[:12],
        run.status,
        f"{run.step:,}",
        "-" if run.seconds is None else f"{run.seconds:,.0f}",
        shown_rate(score.win_rate, score.lower, score.upper),
    )


def configuration_row(one: Configuration) -> tuple[str, ...]:
    """One configuration, under HEAD."""
    return (
        one.label,
        str(len(one.runs)),
        shown(one.mean),
        shown(one.iqm),
        shown(one.improvement),
    )


def method(found: ComparedConfigurations) -> str:
    """How the numbers came about."""
    request = found.request
    few = min(len(one.runs) for one in found.configurations)
    warning = " Intervals over fewer than five trainings are rough." if few < 5 else ""
    met = (
        f"each met its own, because {found.unpaired}" if found.unpaired else "all met the same ones"
    )
    return (
        f"{request.episodes:,} episodes of each of {', '.join(found.cells)}, seed {request.seed} "
        f"({_ways(found)}); {met}. A training's interval is "
        "over its episodes (Wilson); those of a configuration are over trainings (bootstrap of "
        "whole trainings; where these are all alike, the mean's is over their episodes and the "
        "others have none). The interquartile mean is that of the middle half of all win rates. "
        "'Beats the first' is how probable it is that a training of this configuration has a "
        f"higher win rate than one of the first.{warning}"
    )


def configuration_page(found: ComparedConfigurations) -> str:
    """The whole page, in one text."""
    settings = [(key, *values) for key, values in found.settings.items()]
    labels = [one.label for one in found.configurations]
    return page(
        "Comparison of " + ", ".join(labels),
        [
            html_table(HEAD, list(map(configuration_row, found.configurations))),
            heading("Win rate, interquartile mean over trainings"),
            interval_chart(_intervals(found), low=0.0, high=1.0, zero=None),
            *_better(found),
            paragraph(method(found), quiet=True),
            heading("Trainings"),
            html_table(
                ("configuration", *SEED_HEAD),
                [(one.label, *seed_row(run)) for one in found.configurations for run in one.runs],
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
    title = f"Probability that a training beats one of {found.configurations[0].label}"
    return [heading(title), interval_chart(intervals, low=0.0, high=1.0, zero=0.5)]


def _intervals(found: ComparedConfigurations) -> list[Interval]:
    pairs = zip(found.configurations, cycle(COLOURS), strict=False)
    return [_interval(one.label, one.iqm, colour) for one, colour in pairs]


def _interval(label: str, found: Estimate, colour: str) -> Interval:
    """One training has no interval: its bar has no length."""
    lower, upper = (
        (found.lower, found.upper) if isfinite(found.lower) else (found.value, found.value)
    )
    return Interval(label, found.value, lower, upper, colour)


def _ways(found: ComparedConfigurations) -> str:
    """How the agents drew their actions."""
    labels = (run.temperature.label for one in found.configurations for run in one.runs)
    return "actions: " + ", ".join(dict.fromkeys(labels))
