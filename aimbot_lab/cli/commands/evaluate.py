"""`aimbot-lab evaluate`: how good is a run's agent on new seeds?"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.text import print_json, shortened_number, table
from aimbot_lab.cli.view import progress
from aimbot_lab.foundation.shown_text import one_line, shown_rate
from aimbot_lab.tracking.history import add_to_run
from aimbot_lab.tracking.tracker import NOTE_TAG

if TYPE_CHECKING:
    from aimbot_lab.evaluation.episodes import Score
    from aimbot_lab.experiment.analysis.evaluation import Evaluated, PlayerScores
    from aimbot_lab.experiment.runs.agents import TrackedAgent
    from aimbot_lab.foundation.measures import Measure

HEAD = ("player", "target", "difficulty", "win rate [95 %]", "wins")
DRAWS, TIME_HEAD, RETURN_HEAD = "draws", "median to win", "return"


@click.command(short_help="Measure a run's agent on new seeds.")
@click.argument("run", shell_complete=complete_runs)
@options.agent
@options.temperature
@options.episodes
@options.seed
@options.max_steps
@click.option(
    "--baselines/--no-baselines",
    default=True,
    show_default=True,
    help="Whether the world's scripted players play as well.",
)
@options.as_json
@options.trust
@options.place
def evaluate(
    run: str,
    agent: str,
    as_json: bool,
    place: options.StorePlace,
    **request: Any,
) -> None:
    """Evaluate the agent of RUN on new seeds: its id, the beginning of it, or "latest".

    Plays every target and difficulty of the run's last lesson, on seeds that no training uses:
    the agent at the temperature at which record, compare and export play it as well (1: sampled
    as in training), at 0.5, with its likeliest action each time, and the world's scripted
    players, of which one acts at random. All meet episodes of the same seeds. The agent of a run by
    self-play also plays matches against scripts, the run's first snapshot and its best agent.
    The run keeps the result: numbers under test/, a file, and a section of its note.

    \b
    Example:
      aimbot-lab evaluate latest --episodes 500
    """
    from aimbot_lab.experiment.analysis.evaluation import evaluation_record
    from aimbot_lab.experiment.runs.agents import fetch_agent
    from aimbot_lab.worlds.registry import spec_of

    fetched = fetch_agent(run, agent, data_folder=place.folder, tracking_uri=place.tracking_uri)
    found = _evaluated(fetched, request, place)
    if as_json:
        print_json(found.as_json())
    else:
        measures = spec_of(fetched.config.env).measures
        click.echo(_scores(found, measures))
        if found.matches:
            from aimbot_lab.experiment.analysis import matches

            click.echo()
            click.echo(table(matches.HEAD, matches.match_rows(found.matches)))
        for line in found.left_out:
            click.echo(one_line(f"left out: {line}"), err=True)
        click.echo(_explained(found, measures), err=True)
    record = evaluation_record(found, fetched.run.tags.get(NOTE_TAG, ""))
    add_to_run(place.folder, found.run_id, record, tracking_uri=place.tracking_uri)


def _evaluated(
    fetched: "TrackedAgent", request: dict[str, Any], place: options.StorePlace
) -> "Evaluated":
    from aimbot_lab.experiment.analysis import evaluation
    from aimbot_lab.experiment.analysis.matches import opponents_of

    wanted = evaluation.EvaluationRequest(**request)
    matches = opponents_of(
        fetched,
        episodes=wanted.episodes,
        seed=wanted.seed,
        scripts=wanted.baselines,
        data_folder=place.folder,
        tracking_uri=place.tracking_uri,
    )
    parts = evaluation.cells_to_play(fetched, wanted, matches)
    with progress("evaluating", parts) as advance:
        return evaluation.evaluate_agent(
            fetched, wanted, matches=matches, on_cell=lambda who, cell: advance(f"{who}, {cell}")
        )


def _scores(found: "Evaluated", measures: "Sequence[Measure]") -> str:
    """A table; what a world measures stands in the place of the time to win."""
    told = [one for one in measures if one.head]
    heads = [*([DRAWS] if found.has_draws else ()), *([one.head for one in told] or [TIME_HEAD])]
    rows = [row for one in found.players.items() for row in _rows(*one, found, told)]
    return table((*HEAD, *heads, RETURN_HEAD), rows)


def _rows(
    name: str, scores: "PlayerScores", found: "Evaluated", measures: "Sequence[Measure]"
) -> Iterator[tuple[str, ...]]:
    for number, cell in enumerate(scores.cells):
        difficulty = str(cell.difficulty or "-")
        yield ("" if number else name, cell.target, difficulty, *_numbers(cell, found, measures))
    if len(scores.cells) > 1:
        yield ("", "all", "", *_numbers(scores.overall, found, measures))


def _numbers(score: "Score", found: "Evaluated", measures: "Sequence[Measure]") -> tuple[str, ...]:
    from aimbot_lab.foundation.measures import shown

    to_win, earned = score.median_seconds_to_win, score.mean_return
    own = [shown(measure, score.measures) for measure in measures]
    return (
        shown_rate(score.win_rate, score.lower, score.upper),
        f"{score.wins:,} of {score.episodes:,}",
        *((f"{score.draws:,}",) if found.has_draws else ()),
        *(own or ["-" if to_win is None else f"{to_win:.1f} {found.time_unit}"]),
        "-" if earned is None else shortened_number(earned),
    )


def _explained(found: "Evaluated", measures: "Sequence[Measure]") -> str:
    over = "" if measures else "Time to win is over the won episodes, the return over all. "
    return one_line(
        f"{found.agent} agent of run {found.run_id} ({found.name}), saved at step {found.step:,}; "
        f"seed {found.seed}. {over}"
        f"Deploy it with --temperature {found.advised:g}, as record, compare and export do."
    )
