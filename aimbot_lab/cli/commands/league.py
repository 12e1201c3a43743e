"""`aimbot-lab league`: agents, snapshots and scripts, each against each, with ratings."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.views.text import check_output, print_json, table, write_output
from aimbot_lab.cli.views.view import progress
from aimbot_lab.tracking.runs.history import Addition, add_to_run

if TYPE_CHECKING:
    from aimbot_lab.league.league import LeagueRequest, PlannedLeague
    from aimbot_lab.league.result import League

FOLDER = "league"  # among the artifacts of each run


@click.command(short_help="Rate runs and snapshots by their matches.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@click.option(
    "--games",
    default=200,
    show_default=True,
    type=click.IntRange(2, 8192),
    help="Matches of each pair; every pair plays from the same starts.",
)
@click.option(
    "--snapshots",
    default=8,
    show_default=True,
    type=click.IntRange(2, 64),
    help="Snapshots of each run, evenly spaced; the first and the last always.",
)
@click.option("--difficulty", type=click.IntRange(min=1), help="Of all matches. [default: all]")
@options.seed
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Save a page here, too.")
@options.as_json
@options.trust
@options.place
def league(
    runs: tuple[str, ...],
    output: Path | None,
    as_json: bool,
    place: options.StorePlace,
    **given: Any,
) -> None:
    """Rate the agents of each RUN: ids, their beginnings, or "latest".

    Players are the last and the best agent of each run, snapshots of its self-play, and the
    scripted players of the world. Ratings are of all games at once (Bradley-Terry, a draw is half a
    win), with 95 % intervals; greedy has 1200. It says whether there are cycles that ratings can't
    tell, and the weights of the mixture that no player beats. Each run keeps page and numbers.

    \b
    Example:
      aimbot-lab league latest
      aimbot-lab league 3f2a 9c01 --games 400 -o league.html
    """
    from aimbot_lab.league.league import LeagueRequest, plan_league
    from aimbot_lab.league.result import league_page

    if output is not None:
        check_output(output)
    request = LeagueRequest(**given)
    plan = plan_league(runs, request, data_folder=place.folder, tracking_uri=place.tracking_uri)
    found = _played(plan, request)
    print_json(found.as_json()) if as_json else _show(found)
    page = league_page(found)
    if output is not None:
        write_output(page, output)
    _keep(found, page, plan, place)


def _played(plan: "PlannedLeague", request: "LeagueRequest") -> "League":
    from aimbot_lab.league.league import play_league

    with progress(f"{request.games} games a pair", plan.pairs) as advance:
        return play_league(plan, on_pair=advance)


def _show(found: "League") -> None:
    from aimbot_lab.league.result import HEAD, rating_rows, score_rows

    click.echo(table(HEAD, rating_rows(found)))
    click.echo()
    click.echo(table(*score_rows(found)))
    click.echo(f"\n{found.verdict}")
    for line in found.left_out:
        click.echo(f"left out: {line}", err=True)


def _keep(found: "League", page: str, plan: "PlannedLeague", place: options.StorePlace) -> None:
    """Leave page, numbers and games with every run."""
    texts = {
        f"{FOLDER}/league.json": json.dumps(found.as_json(), indent=1),
        f"{FOLDER}/league.html": page,
        f"{FOLDER}/games.csv": found.games_text(),
    }
    for run_id in plan.run_ids:
        add_to_run(place.folder, run_id, Addition(texts=texts), tracking_uri=place.tracking_uri)
