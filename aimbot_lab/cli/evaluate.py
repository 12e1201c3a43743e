"""`aimbot-lab evaluate`: how good is a run's agent on new seeds?"""

from dataclasses import asdict
from pathlib import Path

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.text import print_json, rate, table


@click.command(short_help="Measure a run's agent on new seeds.")
@click.argument("run")
@click.option("--agent", type=click.Choice(["best", "last"]), default="last", show_default=True)
@click.option(
    "--episodes",
    default=200,
    show_default=True,
    type=click.IntRange(1, 65536),
    help="Episodes of each target and difficulty, each with a seed of its own.",
)
@click.option("--seed", default=1_000_003, show_default=True, type=click.IntRange(min=0))
@options.data_dir
@options.tracking_uri
@options.as_json
def evaluate(
    run: str,
    agent: str,
    episodes: int,
    seed: int,
    data_dir: Path | None,
    tracking_uri: str | None,
    as_json: bool,
) -> None:
    """Evaluate the agent of RUN (its id, or the beginning of it) on new seeds.

    Plays every target and difficulty of the run's last lesson, actions chosen deterministically.

    \b
    Example:
      aimbot-lab evaluate 3f2a --episodes 500
    """
    from aimbot_lab.experiment.evaluation import EvaluationRequest, evaluate_run
    from aimbot_lab.tracking.data_folder import locate_data_folder

    request = EvaluationRequest(run, agent, episodes, seed)
    folder = locate_data_folder(data_dir)
    evaluated = evaluate_run(request, folder, tracking_uri=tracking_uri)
    if as_json:
        cells = [asdict(score) for score in evaluated.scores]
        head = {"schema": 1, "run_id": evaluated.run_id, "agent": agent, "seed": seed}
        print_json({**head, "episodes": episodes, "cells": cells})
        return
    rows = [
        (
            score.target,
            score.difficulty or "-",
            score.episodes,
            rate(score.win_rate, score.lower, score.upper),
            "-" if score.seconds_to_win is None else f"{score.seconds_to_win:.1f} s",
        )
        for score in evaluated.scores
    ]
    click.echo(table(("target", "difficulty", "episodes", "win rate [95 %]", "to win"), rows))
