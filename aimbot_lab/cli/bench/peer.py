"""`aimbot-lab bench peer`: how fast does a curriculum learn beside plain stable-baselines3?"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_files
from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.bench.peer import PeerTraining

HEAD = ("seed", "learner", "steps", "seconds", "passed")


@click.command(short_help="Compare with plain stable-baselines3.")
@click.argument(
    "file",
    default="cartpole",
    type=click.Path(path_type=Path),
    shell_complete=complete_files("curriculum"),
)
@options.overrides
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Trainings of each, by turns.",
)
@options.as_json
def peer(file: Path, overrides: tuple[str, ...], seeds: int, as_json: bool) -> None:
    """Train a Gymnasium environment twice to the same proof, and print the ratio of wall time.

    First by the curriculum in FILE (default: the shipped cartpole), through all its lessons; then
    by stable-baselines3's PPO as its own pages use it (a DummyVecEnv, no curriculum, nothing
    tracked), in the last lesson's parameters alone. Rows, rollouts and hyper-parameters are the
    same, and both end where the last lesson's test passes. Takes about five minutes; close other
    programs.

    \b
    Example:
      aimbot-lab bench peer --seeds 5
    """
    from aimbot_lab.bench.peer import peer_trainings, ratio
    from aimbot_lab.bench.timing.machine import this_machine
    from aimbot_lab.experiment.config.document import load_curriculum
    from aimbot_lab.experiment.config.validation import always
    from aimbot_lab.training.training import TrainingPlan

    config = load_curriculum(file, overrides, may_run=always).config
    plan = TrainingPlan(config.seed, config.env, config.lessons, config.train)
    done: list[PeerTraining] = []
    for one in peer_trainings(plan, seeds=seeds):
        done.append(one)
        click.echo(f"seed {one.seed}, {one.learner}: {one.seconds:.1f} s", err=True)
    if as_json:
        machine, trainings = asdict(this_machine()), list(map(asdict, done))
        document = {"schema": 1, "version": aimbot_lab.__version__, "machine": machine}
        print_json({**document, "trainings": trainings, "ratio": ratio(done)})
        return
    click.echo(_shown(done, ratio(done)))


def _shown(done: "list[PeerTraining]", found: float | None) -> str:
    rows = [
        (str(one.seed), one.learner, f"{one.steps:,}", f"{one.seconds:.1f}", _word(one.passed))
        for one in done
    ]
    line = "no seed with which both passed" if found is None else f"{found:.1f} (median over seeds)"
    return (
        f"{table(HEAD, rows)}\n\nseconds of stable-baselines3 over those of the curriculum: {line}"
    )


def _word(passed: bool) -> str:
    return "yes" if passed else "no"
