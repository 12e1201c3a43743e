"""`aimbot-lab export`, `player` and `export-player`: what leaves the lab for other programs."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.options import complete_runs
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.shown_text import one_line

if TYPE_CHECKING:
    from aimbot_lab.training.agents.onnx_export import OnnxCheck


ONNX, ZIP = ".onnx", ".zip"

LOG = logging.getLogger("aimbot_lab.mlagents")
WAIT = 60.0  # seconds for a trainer to listen
MAX_SIZE = 20  # characters
AS_UNITY = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": ["--help"],  # -h would be found in -nographics
}


@click.command(short_help="Export a run's agent for other programs.")
@click.argument("run", shell_complete=complete_runs)
@options.output(
    "An .onnx file, a .zip file for stable-baselines3, or a folder for agent.safetensors and "
    "agent.json.",
    required=True,
)
@options.agent
@click.option(
    "--for",
    "form",
    type=click.Choice(["unity", "plain"]),
    help="What an .onnx file is for: Behavior Parameters in a Unity scene, or programs of your "
    "own. [default: unity for world unity, else plain]",
)
@options.temperature
@options.trust
@options.place
def export(
    run: str,
    output: Path,
    agent: str,
    form: str | None,
    temperature: Temperature | None,
    place: options.StorePlace,
) -> None:
    """Write the agent of RUN for use elsewhere: its id, the beginning of it, or "latest".

    An ONNX file takes raw observations [N, D] and returns actions [N, A] in the environment's
    units, with all scaling inside; its metadata hold their bounds. To draw actions at a temperature
    above 0 it also takes noise [N, A]: random numbers from 0 to 1. An agent's memory is an input
    and an output. The file is written only if onnxruntime plays 10,000 observations as torch does.
    Needs pip install 'aimbot-lab[onnx]'. A folder gets the weights and their description, which run
    no code when they are read and play at any temperature.

    A .zip file is for `load` of the algorithm's class in stable-baselines3 or sb3-contrib, such as
    PPO.load, which needs nothing of aimbot-lab. It holds the weights, the hyper-parameters and the
    environment's own spaces.

    With --for unity the file has the inputs and outputs of mlagents-learn's files: drop it on the
    Model of Behavior Parameters. Its sensors are those of the build, or of `aimbot-lab player`.

    \b
    Examples:
      aimbot-lab export latest -o agent.onnx
      aimbot-lab export latest -o agent.onnx --for unity
      aimbot-lab export latest -o agent.zip
      aimbot-lab export 3f2a --agent best -o my-agent
    """
    from aimbot_lab.experiment.runs.agents import fetch_agent
    from aimbot_lab.worlds.registry import type_of

    suffix = output.suffix.lower()
    if suffix not in ("", ONNX, ZIP):
        raise ConfigurationError(
            f"--output {output}: must end with .onnx or .zip, or name a folder"
        )
    if not output.absolute().parent.is_dir():
        raise ConfigurationError(f"--output {output}: there is no such folder")
    if form is not None and suffix != ONNX:
        raise ConfigurationError(f"--for {form}: is only for .onnx files")
    if temperature is not None and suffix == ZIP:
        raise ConfigurationError(
            "--temperature: a .zip file has none; `predict(deterministic=...)` chooses"
        )
    fetched = fetch_agent(run, agent, data_folder=place.folder, tracking_uri=place.tracking_uri)
    try:
        if suffix == ONNX:
            from aimbot_lab.training.agents.onnx_export import export_onnx
            from aimbot_lab.training.agents.unity_export import export_unity

            played = fetched.saved.agent.temperature(temperature)
            usual = "unity" if type_of(fetched.saved.env).in_scenes else "plain"
            written = export_unity if (form or usual) == "unity" else export_onnx
            check = written(fetched.saved, output, temperature=played)
            episodes, steps = check.observations // check.steps, check.steps
            what = (
                f"{episodes} episodes of {steps} steps, from memory to memory,"
                if steps > 1
                else (f"{check.observations:,} observations")
            )
            click.echo(
                f"written to {output}, {played.label}; onnxruntime plays {what} as torch does: "
                f"{shown_differences(check)}",
                err=True,
            )
        elif suffix == ZIP:
            from aimbot_lab.training.agents.library_zip import export_zip

            made = export_zip(fetched.saved, output)
            click.echo(
                f"written to {output}; {made.algorithm}.load plays {made.observations} "
                f"observations as the agent does, numbers within {made.largest:.1g} of their "
                f"range; its predict takes {one_line(str(made.space))}",
                err=True,
            )
        else:
            saved = fetched.saved
            from aimbot_lab.training.agents.agent_files import save_agent

            paths = save_agent(
                saved.agent.policy, output, env=saved.env, train=saved.train, about=saved.about
            )
            click.echo(f"written to {' and '.join(map(str, paths))}", err=True)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigurationError(f"--output {output}: can't be written: {reason}") from error


def shown_differences(check: "OnnxCheck") -> str:
    """How far the two were apart."""
    apart = f"{check.other_choices} other choices"
    if check.other_choices:
        apart += ", as many as single precision itself moves"
    if check.largest:
        apart += f", numbers within {check.largest:.1g} of their range"
    if check.rounding:
        apart += f" (single precision rounds by {check.rounding:.1g})"
    if check.steps == 1:
        return apart
    return f"{apart}, memory at the end within {check.memory_difference:.1g}"


def size(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """Width and height of `WxH`."""
    if value is None:
        return None
    width, cross, height = value.partition("x")
    if len(value) > MAX_SIZE or not (cross and width.isdecimal() and height.isdecimal()):
        raise click.BadParameter(f"must be WIDTHxHEIGHT, such as 32x16 (got {value!a:.40})")
    return int(width), int(height)


def shown_as(rays: str | None, camera: tuple[int, int] | None, *, rgb: bool) -> list[str]:
    """`KEY=VALUE` of a curriculum by which its world shows this."""
    where = "env.observation"
    overrides = [] if rays is None else [f"{where}.rays={rays}"]
    if camera is None:
        if rgb:
            raise click.BadParameter("--rgb needs --camera")
        return overrides
    values = zip(("width", "height", "grey"), (*camera, str(not rgb).lower()), strict=True)
    return overrides + [f"{where}.camera.{key}={value}" for key, value in values]


CURRICULUM = click.option(
    "--curriculum",
    metavar="FILE",
    help="The curriculum to play: a file or a shipped name. [default: goto]",
)
BEHAVIOR = click.option(
    "--behavior", metavar="NAME", help="Name of the behavior. [default: AimbotLab]"
)
LOG_ID = click.option(
    "--log-id", metavar="UUID", type=click.UUID, help="Id of the side channel for result lines."
)


@click.command(short_help="Play a world for an ML-Agents trainer.", context_settings=AS_UNITY)
@click.option(
    "--mlagents-port",
    "port",
    type=click.IntRange(1, 65535),
    required=True,
    help="Local port on which the trainer listens; 5004 for a trainer without a file.",
)
@CURRICULUM
@options.number("--lesson", 1, (1, None), "Lesson of the curriculum.")
@click.option("--agents", type=click.IntRange(1), help="Rows of the world. [default: as in FILE]")
@options.choice(
    "--log-channel",
    ("auto", "on", "off"),
    "Whether to send result lines as text; auto: unless -logFile is given, as by "
    "mlagents-learn, which reads none.",
)
@LOG_ID
@options.choice(
    "--result-lines",
    ("full", "plain"),
    "full: with target, difficulty and so on; plain: only Warning|Result|Win.",
)
@options.choice("--stats", ("on", "off"), "Whether to send results as numbers.")
@options.choice(
    "--actions",
    ("scaled", "raw"),
    "Unit of continuous actions: -1 to 1, scaled to the world's bounds, or the world's own "
    "unit, such as the arena's mouse of 0.08 radians.",
)
@BEHAVIOR
@click.option(
    "--rays",
    type=click.Choice(["plain", "ml-agents"]),
    help="How to send the arena's rays: among all other numbers, or as a sensor of their own in "
    "the layout of RayPerceptionSensor. [default: as in FILE]",
)
@click.option(
    "--camera",
    metavar="WxH",
    callback=size,
    help="Send a picture of the arena, of this size in pixels. [default: as in FILE]",
)
@click.option("--rgb", is_flag=True, help="Send the picture in colour.")
@click.option("--png", is_flag=True, help="Send pictures compressed.")
@click.option(
    "-logFile", "log_file", type=click.Path(path_type=Path), help="File to write the log to."
)
def player(
    port: int,
    curriculum: str | None,
    lesson: int,
    agents: int | None,
    log_file: Path | None,
    **told: Any,
) -> None:
    """Play a lesson of a curriculum for a trainer of ML-Agents, as a Unity build does.

    The trainer is `UnityEnvironment` of mlagents_envs, or `mlagents-learn`. To have the
    trainer start it as a build, use `aimbot-lab export-player`. Other options of Unity are ignored.

    \b
    Example:
      aimbot-lab player --mlagents-port 5004 --curriculum goto --agents 64
    """
    from aimbot_lab.experiment.conversion.players import player_session
    from aimbot_lab.mlagents.grpc_link import play
    from aimbot_lab.mlagents.player import reports_over
    from aimbot_lab.mlagents.session import ASKED
    from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG

    describes = ASKED in os.environ
    with logged(log_file):
        channel = told["log_channel"]
        text = channel == "on" or (channel == "auto" and (describes or log_file is None))
        log = told["log_id"] or STRING_LOG
        reports = reports_over(stats=told["stats"] == "on", log=log if text else None)
        session = player_session(
            curriculum,
            lesson=lesson,
            agents=agents,
            reports=reports,
            overrides=shown_as(told["rays"], told["camera"], rgb=told["rgb"]),
            name=told["behavior"] or "AimbotLab",
            raw=told["actions"] == "raw",
            plain=told["result_lines"] == "plain",
            png=told["png"],
            describes=describes,
        )
        if log_file is None and not describes and sys.stderr.isatty():  # started by hand
            click.echo(f"waiting for a trainer on port {port}; Ctrl-C ends", err=True)
        with closing(session):
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


@click.command("export-player", short_help="Write a build for ML-Agents' trainers.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--original",
    is_flag=True,
    help="For clients of Aimbot-ParallelEnv: one agent, an unscaled mouse, plain result lines, "
    "no results as numbers.",
)
@CURRICULUM
@BEHAVIOR
@LOG_ID
def export_player(folder: Path, original: bool, **told: Any) -> None:
    """Write DIR/AimbotLab.x86_64, which trainers of ML-Agents start like a Unity build.

    It runs this installation's `aimbot-lab player` with these options. Arguments that the trainer
    passes to the build, such as `--agents 64 --curriculum goto`, go to the player.

    \b
    Examples:
      aimbot-lab export-player build
      aimbot-lab export-player build --original --behavior Aimbot
    """
    from aimbot_lab.experiment.conversion.players import ORIGINAL
    from aimbot_lab.experiment.conversion.players import export_player as exported

    if (file := told["curriculum"]) is not None and Path(file).is_file():
        told["curriculum"] = str(Path(file).resolve())
    options = [f"--{key.replace('_', '-')}={value}" for key, value in told.items() if value]
    click.echo(str(exported(folder, [*(ORIGINAL if original else ()), *options])))
