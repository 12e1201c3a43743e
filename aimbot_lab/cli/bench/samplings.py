"""`aimbot-lab bench self-play`: which past selves should a learner meet?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.progress import progress
from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.bench.samplings.trainings import PlannedTraining, SelfPlayBench
    from aimbot_lab.foundation.statistics.intervals import MeanInterval
    from aimbot_lab.league.result import League, RatedPlayer

HEAD = ("opponents", "rating, mean [95 %]", "of each seed [95 %]")


class Trained(NamedTuple):
    """A training with the rating of its last agent."""

    planned: "PlannedTraining"
    run_id: str
    player: "RatedPlayer"


@click.command("self-play", short_help="Compare whom a learner meets of its past.")
@click.option(
    "--steps",
    type=click.IntRange(1),
    default=20_000_000,
    show_default=True,
    help="Environment steps of each training.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Trainings of each.",
)
@click.option(
    "--games",
    type=click.IntRange(2, 8192),
    default=200,
    show_default=True,
    help="Matches of each pair in the league.",
)
@options.overrides
@options.as_json
@options.place
def self_play(
    steps: int,
    seeds: int,
    games: int,
    overrides: tuple[str, ...],
    *,
    as_json: bool,
    place: options.Place,
) -> None:
    """Train by self-play against the latest self alone, and by each way to draw past selves.

    All last agents then meet in one league, with the scripted players; greedy has 1200 points. Each
    training is a run, seed by seed: what is done is not trained again, and what was broken off by
    Ctrl-C goes on when the same command is given again. 15 trainings of 20 million steps take
    hours.

    \b
    Example:
      aimbot-lab bench self-play --steps 2000000 --seeds 2
    """
    from aimbot_lab.bench.samplings.trainings import SelfPlayBench

    plan = SelfPlayBench(steps, seeds, overrides)
    planned = list(plan.trainings())
    runs = [_run(one, place) for one in planned]
    league = _league(runs, games, place)
    rated = {player.run: player for player in league.players if player.run is not None}
    done = [Trained(one, run, rated[run]) for one, run in zip(planned, runs, strict=True)]
    if as_json:
        print_json(_document(plan, games, done, league))
        return
    click.echo(table(HEAD, _rows(done)))
    click.echo(f"\n{steps:,} steps each; {games} games a pair. {league.verdict}")


def _run(planned: "PlannedTraining", place: options.Place) -> str:
    from aimbot_lab.bench.samplings.trainings import trained_run

    def say(line: str) -> None:
        click.echo(line, err=True)

    return trained_run(planned, place.folder, say=say, tracking_uri=place.tracking_uri)


def _league(runs: Sequence[str], games: int, place: options.Place) -> "League":
    from aimbot_lab.league.league import LeagueRequest, plan_league, play_league

    request = LeagueRequest(games=games, snapshots=None, seed=1)
    plan = plan_league(runs, request, data_folder=place.folder, tracking_uri=place.tracking_uri)
    with progress(f"{games} games a pair", plan.pairs) as advance:
        return play_league(plan, on_pair=advance)


def _by_sampling(done: Sequence[Trained]) -> Mapping[str, list[Trained]]:
    found: dict[str, list[Trained]] = {}
    for one in done:
        found.setdefault(one.planned.sampling, []).append(one)
    return found


def _mean(own: Sequence[Trained]) -> "MeanInterval":
    """The mean rating over seeds, with Student's interval where there are several."""
    from aimbot_lab.bench.ablation.contrast import student_interval
    from aimbot_lab.foundation.statistics.intervals import mean_interval

    ratings = [one.player.rating for one in own]
    return student_interval(ratings) if len(ratings) > 1 else mean_interval(ratings)


def _rows(done: Sequence[Trained]) -> list[tuple[str, ...]]:
    return [
        (sampling, _shown(*_mean(own)), ", ".join(_shown(*_rating(one)) for one in own))
        for sampling, own in _by_sampling(done).items()
    ]


def _rating(one: Trained) -> tuple[float, float, float]:
    return one.player.rating, one.player.lower, one.player.upper


def _shown(value: float, lower: float | None, upper: float | None) -> str:
    ends = "" if lower is None or upper is None else f" [{lower:.0f}, {upper:.0f}]"
    return f"{value:.0f}{ends}"


def _document(
    plan: "SelfPlayBench", games: int, done: Sequence[Trained], league: "League"
) -> dict[str, Any]:
    samplings = [
        {
            "sampling": sampling,
            **_mean(own)._asdict(),
            "seeds": [{"seed": one.planned.seed, **asdict(one.player)} for one in own],
        }
        for sampling, own in _by_sampling(done).items()
    ]
    return {
        "schema": 1,
        "version": aimbot_lab.__version__,
        "plan": {**asdict(plan), "games": games},
        "samplings": samplings,
        "league": league.as_json(),
    }
