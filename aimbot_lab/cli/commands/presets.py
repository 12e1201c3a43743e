"""`aimbot-lab presets` and `aimbot-lab maps`: the files that a world's settings name."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.text import print_json, table
from aimbot_lab.foundation.errors import ConfigurationError

if TYPE_CHECKING:
    from aimbot_lab.foundation.world_type import KeptFiles

PRESETS, MAP = "presets", "map"  # keys of the settings of worlds that have such files
MAX_SEED = 2**63 - 1
any_files = click.argument("files", nargs=-1, type=click.Path(path_type=Path))


def _kept(key: str) -> "KeptFiles":
    from aimbot_lab.worlds.registry import files_of_key

    return files_of_key(key)


def file_commands(key: str, *, noun: str, heading: str, rules: str) -> click.Group:
    """The commands that list, check and draw files of a kind, which `key` of a world names.

    `heading` says it all in a line, `rules` when the exit code is 0.
    """
    many = f"{noun}s"

    def example(words: str) -> str:
        return f"\n\n\b\nExample:\n  aimbot-lab {many} {words}"

    about = (
        f"{heading}\n\nFILES are {noun} files or folders of *.yaml and *.yml files; without any, "
        f"the shipped {many}.{example('list')}"
    )
    group = click.Group(many, help=about, short_help=heading)
    listing = f"List the {many} of FILES, or the shipped ones: what they are called and what they "
    checking = (
        f"Check the {many} of FILES, or the shipped ones, and list every fault with its place."
    )
    drawing = f"Draw the {many} of FILES, or the shipped ones, on one sheet."

    @group.command(
        "list", short_help=f"List {many}.", help=f"{listing}hold.{example('list --json')}"
    )
    @any_files
    @options.as_json
    def show(files: tuple[Path, ...], as_json: bool) -> None:
        found = _kept(key).listed(files)
        if as_json:
            print_json(found.documents)
        else:
            click.echo(table(found.head, found.rows))

    @group.command(
        short_help=f"List the faults of {noun} files.",
        help=f"{checking}\n\nExit code 0 when {rules}{example(f'check my_{many}/')}",
    )
    @any_files
    def check(files: tuple[Path, ...]) -> None:
        count = _kept(key).count(files)
        click.echo(f"{count} {f'{noun} is' if count == 1 else f'{many} are'} fit to use")

    @group.command(
        short_help=f"Draw {many} on one sheet.",
        help=drawing + example(f"draw my_{many}/ -o sheet.png"),
    )
    @any_files
    @options.output("The PNG file to write; one that exists is replaced.", default=f"{many}.png")
    def draw(files: tuple[Path, ...], output: Path) -> None:
        sheet = _kept(key).draw(files)
        try:
            sheet.save(output, format="PNG")
        except OSError as error:
            raise unwritten(output, error) from error
        click.echo(f"the sheet is {output}")

    return group


presets = file_commands(
    PRESETS,
    noun="preset",
    heading="List, check or draw target blocks.",
    rules="every preset obeys the rules and none has the name of another, the shipped ones among "
    "them; 2 otherwise.",
)
maps = file_commands(
    MAP,
    noun="map",
    heading="List, check, draw or make maps.",
    rules="every map obeys the rules, 2 otherwise.",
)


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
@options.written
def make_map(seed: int, obstacle_share: float, sites: int, output: Path | None) -> None:
    """Write the map that the generator makes of a seed, the same everywhere.

    \b
    Example:
      aimbot-lab maps make --seed 7 -o my.yaml
    """
    make = _kept(MAP).make
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


def unwritten(output: Path, error: OSError) -> ConfigurationError:
    """That the file of `--output` can't be written."""
    reason = error.strerror or error
    return ConfigurationError(f"--output {output}: cannot be written: {reason}")
