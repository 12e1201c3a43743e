"""`aimbot-lab presets` and `aimbot-lab maps`: the files that a world's settings name."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json, table
from aimbot_lab.foundation.errors import ConfigurationError

if TYPE_CHECKING:
    from aimbot_lab.foundation.world_type import KeptFiles


PRESETS = "presets"  # of the settings of a world that has such files

any_files = click.argument("files", nargs=-1, type=click.Path(path_type=Path))

MAP = "map"  # of the settings that name such files
MAX_SEED = 2**63 - 1


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

    return files_of_key(PRESETS)


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

    return files_of_key(MAP)


def show_files(kept: "KeptFiles", files: Sequence[Path], *, as_json: bool) -> None:
    """Print what is in `files`, as a table or as JSON."""
    found = kept.listed(files)
    if as_json:
        print_json(found.documents)
    else:
        click.echo(table(found.head, found.rows))


def check_files(kept: "KeptFiles", files: Sequence[Path], *, noun: str) -> None:
    """Print how many of what `noun` calls are in `files`. Raises what is wrong with them."""
    count = kept.count(files)
    click.echo(f"{count} {f'{noun} is' if count == 1 else f'{noun}s are'} fit to use")


def save_sheet(kept: "KeptFiles", files: Sequence[Path], output: Path) -> None:
    """Draw what is in `files` on one sheet and write it to `output`."""
    sheet = kept.draw(files)
    try:
        sheet.save(output, format="PNG")
    except OSError as error:
        raise unwritten(output, error) from error
    click.echo(f"the sheet is {output}")


def unwritten(output: Path, error: OSError) -> ConfigurationError:
    """That the file of `--output` can't be written."""
    reason = error.strerror or error
    return ConfigurationError(f"--output {output}: cannot be written: {reason}")
