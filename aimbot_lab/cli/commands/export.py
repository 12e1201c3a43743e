"""`aimbot-lab export`: an agent for use elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs

if TYPE_CHECKING:
    from aimbot_lab.evaluation.temperature import Temperature
    from aimbot_lab.training.agents.agent_files import SavedAgent
    from aimbot_lab.training.agents.onnx_check import OnnxCheck

ONNX = ".onnx"


@click.command(short_help="Write a run's agent as ONNX or safetensors.")
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="An .onnx file, or a folder for agent.safetensors and agent.json.",
)
@options.agent
@options.temperature
@options.trust
@options.place
def export(
    run: str,
    output: Path,
    agent: str,
    temperature: "Temperature | None",
    place: options.Place,
) -> None:
    """Write the agent of RUN for use elsewhere: its id, the beginning of it, or "latest".

    An ONNX file takes raw observations [N, D] and gives actions [N, A] in the environment's units,
    with all scaling inside; its metadata say what bounds they have. To draw actions at a
    temperature above 0 it takes noise [N, A] as well: random numbers from 0 to 1. What an agent
    remembers is an input and an output. It is written only where onnxruntime plays 10,000
    observations as torch does. It needs pip install 'aimbot-lab[onnx]'. A folder gets the weights
    and their description, which run no code when they are read and play at any temperature.

    \b
    Examples:
      aimbot-lab export latest -o agent.onnx
      aimbot-lab export 3f2a --agent best -o my-agent
    """
    from aimbot_lab.experiment.runs.tracked_agent import fetch_agent
    from aimbot_lab.foundation.errors import ConfigurationError

    suffix = output.suffix.lower()
    if suffix not in ("", ONNX):
        raise ConfigurationError(f"--output {output}: must end with .onnx, or name a folder")
    if not output.absolute().parent.is_dir():
        raise ConfigurationError(f"--output {output}: there is no such folder")
    fetched = fetch_agent(run, agent, data_folder=place.folder, tracking_uri=place.tracking_uri)
    try:
        if suffix == ONNX:
            _write_onnx(fetched.saved, output, temperature)
        else:
            _write(fetched.saved, output)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigurationError(f"--output {output}: can't be written: {reason}") from error


def _write_onnx(saved: "SavedAgent", output: Path, temperature: "Temperature | None") -> None:
    from aimbot_lab.training.agents.onnx_export import export_onnx

    played = saved.agent.temperature(temperature)
    check = export_onnx(saved, output, temperature=played)
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


def shown_differences(check: "OnnxCheck") -> str:
    """How far the two were apart."""
    apart = f"{check.other_choices} other choices, mouse within {check.mouse_difference:.1g}"
    if check.steps == 1:
        return apart
    return f"{apart}, memory at the end within {check.memory_difference:.1g}"


def _write(saved: "SavedAgent", output: Path) -> None:
    from aimbot_lab.training.agents.agent_files import save_agent

    paths = save_agent(
        saved.agent.policy, output, env=saved.env, train=saved.train, about=saved.about
    )
    click.echo(f"written to {' and '.join(map(str, paths))}", err=True)
