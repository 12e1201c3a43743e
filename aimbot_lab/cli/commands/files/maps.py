"""`aimbot-lab maps`: the maps on which games are played, shipped ones and a user's own."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.views.kept_files import check_files, save_sheet, show_files, unwritten

if TYPE_CHECKING:
    from aimbot_lab.foundation.world_type import KeptFiles

KEY = "map"  # of the settings that name such files
MAX_SEED = 2**63 - 1

any_files = click.argument("files", nargs=-1, type=click.Path(path_type=Path))


@click.group(short_help="List, check, draw or make maps.")
def maps() -> None:
    """List, check, draw or make maps.

    FILES are map files or folders of *.yaml and *.yml files; without any, the shipped maps.

    \b
    Example:
      aimbot-lab maps list
    """


@maps.command("list", short_help="List maps.")
@any_files
@options.as_json
def list_maps(files: tuple[Path, ...], as_json: bool) -> None:
    """List the maps of FILES, or the shipped ones: what they are called and what they hold.

    \b
    Example:
      aimbot-lab maps list --json
    """
    show_files(_map_files(), files, as_json=as_json)


@maps.command("check", short_help="List the faults of map files.")
@any_files
def check_maps(files: tuple[Path, ...]) -> None:
    """Check the maps of FILES, or the shipped ones, and list every fault with its place.

    Exit code 0 when every map obeys the rules, 2 otherwise.

    \b
    Example:
      aimbot-lab maps check my_maps/
    """
    check_files(_map_files(), files, noun="map")


@maps.command("draw", short_help="Draw maps on one sheet.")
@any_files
@click.option(
    "-o",
    "--output",
    default="maps.png",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The PNG file to write; one that exists is replaced.",
)
def draw_maps(files: tuple[Path, ...], output: Path) -> None:
    """Draw the maps of FILES, or the shipped ones, on one sheet.

    \b
    Example:
      aimbot-lab maps draw my_maps/ -o sheet.png
    """
    save_sheet(_map_files(), files, output)


@maps.command("make", short_help="Write a generated map.")
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0, MAX_SEED),
    help="Another seed makes another map.",
)
@click.option(
    "--obstacle-share",
    default=0.4,
    show_default=True,
    type=options.NumberRange(0, 1),
    help="Share of the cells that are obstacles.",
)
@click.option(
    "--sites",
    default=10,
    show_default=True,
    type=click.IntRange(1, 10),
    help="Treasure sites.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write, replaced where it exists. [default: standard output]",
)
def make_map(seed: int, obstacle_share: float, sites: int, output: Path | None) -> None:
    """Write the map that the generator makes of a seed, the same everywhere.

    \b
    Example:
      aimbot-lab maps make --seed 7 -o my.yaml
    """
    make = _map_files().make
    assert make is not None
    text = make(seed, {"obstacle_share": obstacle_share, "sites": sites})
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritten(output, error) from error
    click.echo(f"the map is {output}")


def _map_files() -> "KeptFiles":
    from aimbot_lab.worlds.registry import files_of_key

    return files_of_key(KEY)
