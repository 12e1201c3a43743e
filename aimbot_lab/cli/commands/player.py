"""`aimbot-lab player` and `aimbot-lab export-player`: worlds for trainers of ML-Agents."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from aimbot_lab.foundation.errors import LabError

LOG = logging.getLogger("aimbot_lab.mlagents")
WAIT = 60.0  # seconds for a trainer to listen
AS_UNITY = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": ["--help"],  # -h would be found in -nographics
}


@click.command(short_help="Play a world for a trainer of ML-Agents.", context_settings=AS_UNITY)
@click.option(
    "--mlagents-port",
    "port",
    type=click.IntRange(1, 65535),
    required=True,
    help="Port of this machine on which the trainer listens; 5004 where it was told no file.",
)
@click.option(
    "--curriculum", metavar="FILE", help="What is played, a file or a shipped name. [default: goto]"
)
@click.option(
    "--lesson", default=1, show_default=True, type=click.IntRange(1), help="Lesson of it."
)
@click.option("--agents", type=click.IntRange(1), help="Rows of the world. [default: as in FILE]")
@click.option(
    "--log-channel",
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
    show_default=True,
    help="Whether result lines are sent as text; auto: unless -logFile is given, as "
    "mlagents-learn does, which reads none.",
)
@click.option("--stats/--no-stats", default=True, help="Whether results are sent as numbers.")
@click.option("-logFile", "log_file", type=click.Path(path_type=Path), help="Where its log goes.")
def player(
    port: int,
    curriculum: str | None,
    lesson: int,
    agents: int | None,
    log_channel: str,
    stats: bool,
    log_file: Path | None,
) -> None:
    """Play a lesson of a curriculum for a trainer of ML-Agents, as a Unity build does.

    The trainer is `UnityEnvironment` of mlagents_envs or `mlagents-learn`. It starts the player by
    itself where `aimbot-lab export-player` has written one. Other options of Unity are ignored.

    \b
    Example:
      aimbot-lab player --mlagents-port 5004 --curriculum goto --agents 64
    """
    from aimbot_lab.experiment.ml_agents.players import player_session
    from aimbot_lab.mlagents.grpc_link import play
    from aimbot_lab.mlagents.player_channels import reports_over

    with logged(log_file):
        text = log_channel == "on" or (log_channel == "auto" and log_file is None)
        reports = reports_over(stats=stats, text=text)
        session = player_session(curriculum, lesson=lesson, agents=agents, reports=reports)
        play(session, port, wait_s=WAIT)


@contextmanager
def logged(file: Path | None) -> Iterator[None]:
    """Write what the player logs, and why it ends, to `file` as well."""
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        yield
    except LabError as error:
        LOG.error("%s", error)
        raise
    finally:
        LOG.removeHandler(handler)
        handler.close()


@click.command("export-player", short_help="Write a build for ML-Agents.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def export_player(folder: Path) -> None:
    """Write DIR/AimbotLab.x86_64, which trainers of ML-Agents start like a Unity build.

    It runs `aimbot-lab player` of this installation; the trainer's arguments for the build, such as
    `--agents 64 --curriculum goto`, are the player's.

    \b
    Example:
      aimbot-lab export-player build
    """
    from aimbot_lab.experiment.ml_agents.players import export_player as exported

    click.echo(str(exported(folder)))
