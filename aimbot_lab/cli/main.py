"""The entry point: commands, and errors as one line with an exit code."""

import os
import sys

import click

import aimbot_lab
from aimbot_lab.cli.bench import bench
from aimbot_lab.cli.check import check
from aimbot_lab.cli.evaluate import evaluate
from aimbot_lab.cli.presets import presets
from aimbot_lab.cli.run import run
from aimbot_lab.cli.runs import runs
from aimbot_lab.cli.ui import ui

INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(aimbot_lab.__version__, prog_name="aimbot-lab")
def cli() -> None:
    """Train game agents by curriculum on a fast FPS arena, and compare them in MLflow.

    \b
    Begin with:
      aimbot-lab run curricula/goto.yaml
      aimbot-lab ui
    """


for command in (run, runs, ui, check, evaluate, presets, bench):
    cli.add_command(command)


def main() -> None:
    """Run the command line; every error a user can cause is told in a line, without a traceback."""
    sys.exit(_exit_code())


def _exit_code() -> int:
    from aimbot_lab.foundation.errors import LabError

    try:
        code = cli.main(standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped before training began; nothing was lost", err=True)
        return INTERRUPTED
    except LabError as error:
        click.echo(f"error: {error}" if error.exit_code == 1 else str(error), err=True)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has left; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"error: {where}{error.strerror or error}", err=True)
        return 1
