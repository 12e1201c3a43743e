"""The entry point: commands, and errors as one line with an exit code."""

import sys
from typing import Any

import click

from aimbot_lab.cli.bench import bench
from aimbot_lab.cli.commands.explain import explain
from aimbot_lab.cli.commands.export import export, export_player, player
from aimbot_lab.cli.commands.files import check, convert, init, maps, presets, schema
from aimbot_lab.cli.commands.judging import compare, evaluate, league, plot
from aimbot_lab.cli.commands.pages import panel, ui
from aimbot_lab.cli.commands.play import play
from aimbot_lab.cli.commands.record import record, replay
from aimbot_lab.cli.commands.run import resume, run
from aimbot_lab.cli.commands.runs import delete, runs, weights
from aimbot_lab.cli.commands.sweep import sweep
from aimbot_lab.cli.options import completion
from aimbot_lab.cli.stopping import no_interrupt_lost
from aimbot_lab.cli.text import guard_streams, wrapped
from aimbot_lab.foundation.errors import LabError, file_reason, reason_and_place
from aimbot_lab.foundation.shown_text import one_line, refusal_lines
from aimbot_lab.tracking.data_folder import without_password
from aimbot_lab.version import full_version

INTERRUPTED = 130
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """A group whose commands do not end without a word by a lost connection or a `sys.exit`."""

    def invoke(self, ctx: click.Context) -> Any:
        """What the command returns."""
        try:
            with no_interrupt_lost():
                return super().invoke(ctx)
        except SystemExit as error:  # of code that was called, and the exit code would be its
            raise LabError(f"called code raised {reason_and_place(error)}") from error
        except BrokenPipeError as error:
            # click takes it for a reader of our output who left, and is silent. But the standard
            # streams are guarded: this was a pipe or a connection to somewhere else.
            raise LabError("a connection was closed by the other side") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by what they are for, with a line each."""
        del ctx
        width = max(map(len, self.commands))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{one.name:{width}}", one.short_help or "") for one in group])


def _show_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(f"aimbot-lab, version {full_version()}")
        context.exit()


@click.group(cls=Commands, context_settings=SETTINGS)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version, and a hash of the code, and exit.",
)
def cli() -> None:
    """Train game agents by curriculum: on Gymnasium environments, Unity builds and fast worlds.

    \b
    Begin with:
      aimbot-lab run goto       train an agent
      aimbot-lab panel          start, watch and steer runs on a page
    """


GROUPS = {
    "Train": (init, check, run, resume, weights, sweep),
    "Judge": (evaluate, compare, league, explain, plot),
    "Look": (panel, ui, record, replay),
    "Worlds": (play, presets, maps),
    "ML-Agents and other tools": (convert, export, player, export_player),
    "Keep house": (runs, delete, schema, completion, bench),
}
for group in GROUPS.values():
    for command in group:
        cli.add_command(command)


def main() -> None:
    """Run the command line; errors of the user are reported in one line, without a traceback."""
    guard_streams()
    sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        code = cli.main(standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return INTERRUPTED
    except LabError as error:
        message = f"error: {error}" if error.exit_code == 1 else str(error)
        _refuse(message)
        return error.exit_code
    except OSError as error:
        _refuse(f"error: {file_reason(error)}")
        return 1


def _show(error: click.ClickException) -> None:
    """One line that says what was wrong with the call, and where to read more."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    what = one_line(error.format_message().replace("\n", " ")).rstrip(". ")
    what = what.replace("not a valid integer range", "not a whole number")  # as click calls it
    message = f"{context.command_path}: {what} ({context.command_path} --help says more)"
    _refuse(message)


def _refuse(message: str) -> None:
    click.echo(wrapped(refusal_lines(without_password(message)), err=True), err=True)
