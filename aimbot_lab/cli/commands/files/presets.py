"""`aimbot-lab presets`: the target blocks, shipped ones and a user's own."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.views.kept_files import check_files, save_sheet, show_files

if TYPE_CHECKING:
    from aimbot_lab.foundation.world_type import KeptFiles

KEY = "presets"  # of the settings of a world that has such files

any_files = click.argument("files", nargs=-1, type=click.Path(path_type=Path))


@click.group(short_help="List, check or draw target blocks.")
def presets() -> None:
    """List, check or draw target blocks.

    FILES are preset files or folders of *.yaml and *.yml files; without any, the shipped presets.

    \b
    Example:
      aimbot-lab presets list
    """


@presets.command("list", short_help="List presets.")
@any_files
@options.as_json
def list_presets(files: tuple[Path, ...], as_json: bool) -> None:
    """List the presets of FILES, or the shipped ones: what they are called and what they hold.

    \b
    Example:
      aimbot-lab presets list --json
    """
    show_files(_presets(), files, as_json=as_json)


@presets.command("check", short_help="List the faults of preset files.")
@any_files
def check_presets(files: tuple[Path, ...]) -> None:
    """Check the presets of FILES, or the shipped ones, and list every fault with its place.

    Exit code 0 when every preset obeys the rules and none has the name of another, the shipped
    ones among them; 2 otherwise.

    \b
    Example:
      aimbot-lab presets check my_presets/
    """
    check_files(_presets(), files, noun="preset")


@presets.command("draw", short_help="Draw presets on one sheet.")
@any_files
@click.option(
    "-o",
    "--output",
    default="presets.png",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The PNG file to write; one that exists is replaced.",
)
def draw_presets(files: tuple[Path, ...], output: Path) -> None:
    """Draw the presets of FILES, or the shipped ones, on one sheet.

    \b
    Example:
      aimbot-lab presets draw my_presets/ -o sheet.png
    """
    save_sheet(_presets(), files, output)


def _presets() -> "KeptFiles":
    from aimbot_lab.worlds.registry import files_of_key

    return files_of_key(KEY)
